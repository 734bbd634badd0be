package main

import (
	"context"
	"encoding/binary"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/host"
	"xroce/roce/wire"
)

func (a *app) devicesCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "devices",
		Short: "List the interfaces that can be RoCE devices",
		Long: `List the Ethernet interfaces, each of which can be a RoCE device, in the form of
ibv_devices. It needs no privileges.`,
		Example: "  xroce devices\n  xroce devices --json",
		Args:    cobra.NoArgs,
	}, func(context.Context, []string) error {
		list, err := a.machine.Interfaces()
		if err != nil {
			return err
		}
		devices := host.Devices(list)
		if a.json {
			infos := make([]devinfo, 0, len(devices))
			for _, d := range devices {
				infos = append(infos, newDevinfo(d))
			}
			return a.printJSON(infos)
		}
		a.printf("    %-16s\t   node GUID\n    %-16s\t----------------\n", "device", "------")
		for _, d := range devices {
			a.printf("    %-16s\t%016x\n", d.Name, nodeGUID(d.MAC))
		}
		return nil
	})
}

// nodeGUID is the modified EUI-64 of the MAC address, as rxe has it.
func nodeGUID(mac [6]byte) uint64 {
	gid := wire.LinkLocalGID(mac)
	return binary.BigEndian.Uint64(gid[8:])
}
