package cm_test

import "testing"

// TestNoStation: frames from MAC addresses that no station has, all zeros or a group, are not
// taken. There is nobody to answer to: were it looked for, strangers had neighbours asked for
// at any rate; and an answer to a group would go to all.
func TestNoStation(t *testing.T) {
	for name, mac := range map[string][6]byte{
		"zero": {}, "broadcast": {255, 255, 255, 255, 255, 255}, "group": {1, 0, 0x5e, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSiege(t)
			s.stranger.from, s.stranger.port = mac, 9
			s.flood(t, nearby, 100)
			if n := s.manager.Lost().Martian; n != 100 {
				t.Errorf("%d were taken", 100-n)
			}
			if n := s.town.asked.Load(); n != 0 {
				t.Errorf("%d addresses were asked for", n)
			}
			if n := packets(t, s.stranger.dev); n != 0 {
				t.Errorf("%d answers came", n)
			}
			s.connects(t)
		})
	}
}
