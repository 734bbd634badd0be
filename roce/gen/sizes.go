package gen

import (
	"fmt"
	"strings"
)

// imix is the simple mix of Internet traffic: of twelve frames seven of 64 bytes, four of
// 594 and one of 1514, the longest without FCS at an MTU of 1500. They are in an order that
// spreads them.
var imix = [...]uint64{64, 594, 64, 64, 594, 64, 1514, 64, 594, 64, 64, 594}

// ParseSizes reads lengths of frames without FCS as ParseValues does, and "imix".
func ParseSizes(text string, seed uint64) (Values, error) {
	if strings.EqualFold(text, "imix") {
		return List(imix[:]...), nil
	}
	v, err := ParseValues(text, seed, nil)
	if err != nil {
		return v, fmt.Errorf("%w; sizes are bytes, as 64, 64,1500, 64-1500, random:64-1500, "+
			"or imix", err)
	}
	return v, nil
}
