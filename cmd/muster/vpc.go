// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"

	"github.com/spf13/cobra"

	"muster.dev/muster/internal/imds"
	"muster.dev/muster/internal/machine/local"
	"muster.dev/muster/internal/state"
	"muster.dev/muster/internal/vpc"
)

func newVPCCommand() *cobra.Command {
	var stateDir, vpcCIDR, podCIDR, apiServer string
	command := &cobra.Command{
		Use:   "vpc",
		Short: "Hold the machines' private network, relay between it and the API server, and tell machines who they are",
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
			log := slog.New(slog.NewTextHandler(os.Stderr, nil))
			metadata, err := newMetadata(dir, network, machines, log)
			if err != nil {
				return err
			}
			relay, err := vpc.NewRelay(vpc.RelayConfig{
				Network: network, PodCIDR: pods, APIServer: apiServer, EgressSocket: dir.EgressSocket(), Metadata: metadata, Log: log,
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

// newMetadata makes the instance metadata service of the local provider's machines.
func newMetadata(dir state.Dir, network *vpc.Network, machines netip.Prefix, log *slog.Logger) (*imds.Server, error) {
	directory, err := local.NewDirectory(dir, network, machines)
	if err != nil {
		return nil, err
	}
	key, err := local.MetadataKey(dir)
	if err != nil {
		return nil, err
	}
	return imds.NewServer(imds.ServerConfig{Directory: directory, Key: key, Log: log})
}
