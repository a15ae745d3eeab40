// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/console"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/cluster/component"
	"muster.dev/muster/internal/cluster/machine/local"
	"muster.dev/muster/internal/cluster/privatedns"
	"muster.dev/muster/internal/cluster/vpc"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/platform/statedir"
)

// NewVPCCommand returns the hidden command that holds the machines' network.
func NewVPCCommand() *cobra.Command {
	var stateDir, vpcCIDR, podCIDR, apiServer string
	command := &cobra.Command{
		Use:   "vpc",
		Short: "Hold the machines' private network, relay between it and the API server, and answer machines' questions: instance metadata, DNS",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := statedir.Open(stateDir)
			if err != nil {
				return err
			}
			machines, err := netip.ParsePrefix(vpcCIDR)
			if err != nil {
				return console.UsageError{Err: fmt.Errorf("--vpc-cidr: %w", err)}
			}
			pods, err := netip.ParsePrefix(podCIDR)
			if err != nil {
				return console.UsageError{Err: fmt.Errorf("--pod-cidr: %w", err)}
			}
			network, err := vpc.New(vpc.Config{Dir: dir.VPC(), CIDR: machines})
			if err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(os.Stderr, nil))
			roles, err := newRoles(cmd.Context(), dir, log)
			if err != nil {
				return err
			}
			metadata, err := newMetadata(dir, network, machines, roles, log)
			if err != nil {
				return err
			}
			names, err := newNames(dir, network, machines, log)
			if err != nil {
				return err
			}
			relay, err := vpc.NewRelay(vpc.RelayConfig{
				Network: network, PodCIDR: pods, APIServer: apiServer, EgressSocket: dir.EgressSocket(),
				IdentitySocket: dir.MachinesSocket(), Metadata: metadata, Names: names, Log: log,
			})
			if err != nil {
				return err
			}
			return relay.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&stateDir, "state-dir", statedir.Default(), "directory of everything muster keeps")
	flags.StringVar(&vpcCIDR, "vpc-cidr", "192.168.64.0/18", "range of addresses of machines")
	flags.StringVar(&podCIDR, "pod-cidr", "10.244.0.0/16", "range of addresses of pods, which API servers may reach")
	flags.StringVar(&apiServer, "api-server", "", "address of the API server on the host's loopback, as 127.0.0.1:6443")
	return command
}

// newRoles knows machines' roles by the identity service, and forgets them when that tells of a change.
func newRoles(ctx context.Context, dir statedir.Dir, log *slog.Logger) (imds.Credentials, error) {
	client, err := keyservice.NewClient(keyservice.ClientConfig{Socket: dir.MetadataSocket(), Credential: metadataCredential(dir), Logger: log})
	if err != nil {
		return nil, err
	}
	cache := imds.NewRoleCache(local.NewRoles(client), time.Now)
	go client.Watch(ctx, func(change keyservice.Change) {
		if local.ForgetOn(change) {
			cache.Changed()
		}
	})
	return cache, nil
}

// metadataCredential is the certificate by which the identity service recognizes the requester that may have machines' credentials.
func metadataCredential(dir statedir.Dir) keyservice.Credential {
	store := authority.NewStore(dir.PKI())
	return keyservice.Credential{CA: store.AuthorityPath(authority.Account), File: store.Path(component.CredentialAccountMetadata)}
}

// newMetadata makes the instance metadata service of the local provider's machines.
func newMetadata(dir statedir.Dir, network *vpc.Network, machines netip.Prefix, roles imds.Credentials, log *slog.Logger) (*imds.Server, error) {
	directory, err := local.NewDirectory(dir, network, machines)
	if err != nil {
		return nil, err
	}
	key, err := local.MetadataKey(dir)
	if err != nil {
		return nil, err
	}
	return imds.NewServer(imds.ServerConfig{Directory: directory, Credentials: roles, Key: key, Log: log})
}

// newNames makes the VPC's name server. It has a directory of its own: queries here keep no machine from its metadata.
func newNames(dir statedir.Dir, network *vpc.Network, machines netip.Prefix, log *slog.Logger) (*privatedns.Server, error) {
	directory, err := local.NewDirectory(dir, network, machines)
	if err != nil {
		return nil, err
	}
	return privatedns.NewServer(privatedns.Config{Machines: directory.Machines, Log: log})
}
