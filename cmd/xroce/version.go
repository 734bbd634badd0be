package main

import (
	"context"
	"runtime"

	"github.com/spf13/cobra"
)

// versionReport is what `xroce version --json` prints.
type versionReport struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernel   string `json:"kernel"`
}

func (a *app) versionCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use:     "version",
		Short:   "Print the versions of xroce, Go and the kernel",
		Example: "  xroce version\n  xroce version --json",
		Args:    cobra.NoArgs,
	}, func(context.Context, []string) error {
		r := versionReport{
			Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		}
		var err error
		if r.Kernel, err = a.machine.Kernel(); err != nil {
			return err
		}
		if a.json {
			return a.printJSON(r)
		}
		a.printf("xroce %s\n%s %s\nkernel %s\n", r.Version, r.Go, r.Platform, r.Kernel)
		return nil
	})
}
