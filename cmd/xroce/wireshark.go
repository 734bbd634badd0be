package main

import (
	"context"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/userfile"
	"xroce/cmd/xroce/internal/wireshark"
)

// wiresharkCommand prints or installs the dissector for Wireshark.
func (a *app) wiresharkCommand() *cobra.Command {
	var (
		install bool
		dir     string
	)
	c := &cobra.Command{
		Use:   "wireshark",
		Short: "Teach Wireshark and tshark what they do not know of RoCE",
		Long: `Print a dissector in Lua, or with --install put it where Wireshark and tshark of this
user find it. It shows whether the ICRC of each packet is right (field xroce.icrc), names
FLUSH, ATOMIC WRITE, CNP and XRC with their headers, the congestion bits of the BTH, and
what is xroce's own: selective acknowledges, messages, native packets on Ethernet.`,
		Example: `  xroce wireshark --install
  tshark -r capture.pcapng -Y 'xroce.icrc == "BAD"'
  xroce wireshark >xroce.lua && tshark -X lua_script:xroce.lua -r capture.pcapng`,
		Args: cobra.NoArgs,
	}
	c.Flags().BoolVar(&install, "install", false, "install it instead of printing it")
	c.Flags().StringVar(&dir, "dir", "", "install it in this directory of plugins instead of "+
		"that of the user")
	return a.command(c, func(context.Context, []string) error {
		if !install {
			if dir != "" {
				return usagef("--dir is for --install")
			}
			_, err := a.stdout.Write(wireshark.Script())
			return err
		}
		if dir == "" {
			var err error
			if dir, err = wireshark.Directory(); err != nil {
				return err
			}
		}
		path, err := wireshark.Install(dir)
		if err != nil {
			return userfile.Failed(err)
		}
		if a.json {
			return a.printJSON(struct {
				Installed string `json:"installed"`
			}{path})
		}
		a.printf("installed %s\n", path)
		return nil
	})
}
