package trial

import (
	"context"
	"io"

	"xroce/engine/sim/campaign"
)

// A Campaign is a range of seeds, a Summary how it ended, and a Result how one run did.
type (
	Campaign = campaign.Campaign[Stats]
	Summary  = campaign.Summary[Stats]
	Result   = campaign.Result[Stats]
)

// RunCampaign runs the seeds of a campaign until all are done or the context ends.
func RunCampaign(ctx context.Context, c *Campaign) *Summary {
	return c.RunSeeds(ctx, &campaign.Trial[Stats]{
		Run: func(ctx context.Context, seed uint64, log io.Writer) *Result {
			return Run(ctx, seed, Options{Log: log})
		},
		Add: (*Stats).Add, Determinism: Determinism,
	})
}
