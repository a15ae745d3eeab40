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

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/machine/privatedns"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/platform/statedir"
)

// NewVPCCommand returns the hidden command that holds the machines' network.
func NewVPCCommand() *cobra.Command {
	var stateDir, id, regionName string
	command := &cobra.Command{
		Use:   "vpc",
		Short: "Hold a private network of machines, relay between it and API servers, and answer machines' questions: instance metadata, DNS",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := statedir.Open(stateDir)
			if err != nil {
				return err
			}
			if err := vpc.ValidateID(id); err != nil {
				return terminal.UsageError{Err: fmt.Errorf("--id: %w", err)}
			}
			network, err := vpc.Open(dir.VPCs(), id)
			if err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(os.Stderr, nil))
			roles, err := newRoles(cmd.Context(), dir, log)
			if err != nil {
				return err
			}
			metadata, err := newMetadata(dir, id, roles, log)
			if err != nil {
				return err
			}
			// Each has a directory of its own: what is asked at one keeps no machine from the others.
			doors, err := local.NewDirectory(dir, id)
			if err != nil {
				return err
			}
			in, err := region.Find(regionName)
			if err != nil {
				return terminal.UsageError{Err: fmt.Errorf("--region: %w", err)}
			}
			issuers, err := issuer.ReadEndpoint(dir.Issuers())
			if err != nil {
				return err
			}
			issuerName, issuerSocket := issuers.InVPC(), ""
			if issuerName != "" {
				issuerSocket = dir.IssuersSocket()
			}
			names, err := newNames(dir, network, in, issuerName, log)
			if err != nil {
				return err
			}
			relay, err := vpc.NewRelay(vpc.RelayConfig{
				Network: network, Machines: doors, Socket: dir.VPCSocket(id),
				IdentitySocket: dir.MachinesSocket(),
				RegistryName:   in.RegistryName(component.DefaultAccount), RegistrySocket: dir.RegistryMachinesSocket(),
				IssuerName: issuerName, IssuerSocket: issuerSocket, Metadata: metadata, Names: names, Log: log,
			})
			if err != nil {
				return err
			}
			return relay.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&stateDir, "state-dir", statedir.Default(), "directory of everything muster keeps")
	flags.StringVar(&regionName, "region", region.Default, "region of the account, by whose name AWS's services are called")
	flags.StringVar(&id, "id", "", "id of the VPC, which is described below the state directory")
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

// metadataCredential is the certificate by which the identity service recognizes the requester that may have machines'
// credentials.
func metadataCredential(dir statedir.Dir) keyservice.Credential {
	store := authority.NewStore(dir.PKI())
	return keyservice.Credential{CA: store.AuthorityPath(authority.Account), File: store.Path(component.CredentialAccountMetadata)}
}

// newMetadata makes the instance metadata service of the local provider's machines.
func newMetadata(dir statedir.Dir, id string, roles imds.Credentials, log *slog.Logger) (*imds.Server, error) {
	directory, err := local.NewDirectory(dir, id)
	if err != nil {
		return nil, err
	}
	key, err := local.MetadataKey(dir, id)
	if err != nil {
		return nil, err
	}
	return imds.NewServer(imds.ServerConfig{Directory: directory, Credentials: roles, Key: key, Log: log})
}

// newNames makes the VPC's name server.
func newNames(dir statedir.Dir, network *vpc.Network, in region.Region, issuerName string, log *slog.Logger) (*privatedns.Server, error) {
	services := append(in.ServiceNames(), in.RegistryName(component.DefaultAccount))
	if issuerName != "" {
		services = append(services, issuerName)
	}
	directory, err := local.NewDirectory(dir, network.ID())
	if err != nil {
		return nil, err
	}
	return privatedns.NewServer(privatedns.Config{
		Machines: directory.Machines, Services: services, ServicesAt: vpc.Services(network.CIDR()), Log: log,
		Domain: in.Domain(), Outside: namesOutside(dir, network.ID()),
		Balancers: func() (map[string]netip.Addr, error) { return balancerNames(network) },
	})
}

// namesOutside are the host's name servers, for a VPC that has a way out.
func namesOutside(dir statedir.Dir, id string) func() ([]string, error) {
	return func() ([]string, error) {
		description, err := vpc.Read(dir.VPCs(), id)
		if err != nil || !description.Egress.IsOpen() {
			return nil, err
		}
		return privatedns.HostServers("/etc/resolv.conf")
	}
}

// balancerNames are the names of the VPC's load balancers.
func balancerNames(network *vpc.Network) (map[string]netip.Addr, error) {
	all, err := network.Balancers()
	names := make(map[string]netip.Addr, len(all))
	for _, b := range all {
		names[b.DNSName] = b.Address
	}
	return names, err
}
