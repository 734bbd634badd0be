package host

import (
	"testing"

	"xroce/xsk/xsktest/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
