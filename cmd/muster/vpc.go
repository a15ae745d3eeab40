// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"

	"github.com/spf13/cobra"

	"muster.dev/muster/internal/state"
	"muster.dev/muster/internal/vpc"
)

func newVPCCommand() *cobra.Command {
	var stateDir, vpcCIDR, podCIDR, apiServer string
	command := &cobra.Command{
		Use:   "vpc",
		Short: "Hold the machines' private network and relay between it and the API server",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := state.Open(stateDir)
			if err != nil {
				return err
			}
			machines, err := netip.ParsePrefix(vpcCIDR)
			if err != nil {
				return usageError{fmt.Errorf("--vpc-cidr: %w", err)}
			}
			pods, err := netip.ParsePrefix(podCIDR)
			if err != nil {
				return usageError{fmt.Errorf("--pod-cidr: %w", err)}
			}
			network, err := vpc.New(vpc.Config{Dir: dir.VPC(), CIDR: machines})
			if err != nil {
				return err
			}
			relay, err := vpc.NewRelay(vpc.RelayConfig{
				Network: network, PodCIDR: pods, APIServer: apiServer, EgressSocket: dir.EgressSocket(),
				Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
			})
			if err != nil {
				return err
			}
			return relay.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&stateDir, "state-dir", state.Default(), "directory of everything muster keeps")
	flags.StringVar(&vpcCIDR, "vpc-cidr", "192.168.64.0/18", "range of addresses of machines")
	flags.StringVar(&podCIDR, "pod-cidr", "10.244.0.0/16", "range of addresses of pods, which API servers may reach")
	flags.StringVar(&apiServer, "api-server", "", "address of the API server on the host's loopback, as 127.0.0.1:6443")
	return command
}
