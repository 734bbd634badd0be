package engine

import (
	"io/fs"
	"log/slog"
	"time"

	"xroce/engine/host"
	"xroce/xsk"
)

// A fakeCard is a card as what opens links sees it: its program takes every socket.
type fakeCard struct{ have func() int }

func (fakeCard) Port() host.Port         { return host.Port{Name: "fake0", Index: 1, MTU: 1500} }
func (fakeCard) Register(int, int) error { return nil }
func (fakeCard) Taken(int) bool          { return false }

// OpenShares opens a link for each driver of a device on a kernel in memory, which can be opened
// again as those of Open can, on the queues that there are by then.
func OpenShares(
	k xsk.Kernel, o Options, have func() int, log *slog.Logger,
) (links []xsk.Link, err error) {
	card := fakeCard{have}
	for i := range max(1, o.Drivers) {
		s := &share{
			host: card, program: card, number: i, log: log,
			link: func(port host.Port, queues []int, bind time.Duration) (steeredLink, error) {
				return xsk.OpenGroup(xsk.Config{
					Ifindex: 1, Kernel: k, RxFrames: 256, TxFrames: 128, BindTimeout: bind,
				}, queues)
			},
			deal: func(host.Port) ([][]int, error) {
				if have() == 0 {
					return nil, fs.ErrNotExist
				}
				return o.dealAgain(have()), nil
			},
		}
		queues, err := s.now()
		if err != nil {
			return nil, err
		}
		link, err := s.open(queues, time.Millisecond)
		if err != nil {
			return nil, err
		}
		links = append(links, s.reopenable(link))
	}
	return links, nil
}
