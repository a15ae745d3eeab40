// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"errors"
	"fmt"
	"net"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/iam/caller"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/registrylogin"
	"muster.dev/muster/internal/platform/httpserve"
	"muster.dev/muster/internal/platform/socketdir"
)

// Doors are where the service is asked. People and machines come to the front of the AWS APIs; authenticators, instance
// metadata and the image registry have a socket each.
type Doors struct {
	// Address is the TCP address for people, and Certificate the file of the certificate and key of the front.
	Address, Certificate string
	// Machines is the socket for requests from VPCs; empty without VPCs.
	Machines string
	// Account is the credential that authenticators and instance metadata know the account by.
	Account keyservice.Credential
	// Identity is the socket of authenticators: of the clusters that are here, if a user of the host is one's.
	Identity string
	Here     func(caller.Caller) bool
	Peers    func(user uint32) bool
	// Metadata is the socket that gives role credentials, and Login the one of the image registry.
	Metadata, Login string
}

// Open opens the doors of a service, and has each served by begin, whose function returns when the context ends. After an error the
// caller ends the context, which closes what is open.
func (d Doors) Open(ctx context.Context, s *Service, front *awsfront.Front, begin func(func() error)) error {
	people, err := new(net.ListenConfig).Listen(ctx, "tcp", d.Address)
	if err != nil {
		return fmt.Errorf("listening for STS and IAM: %w", err)
	}
	files, err := httpserve.ReadFiles("the identity service", d.Certificate, d.Certificate, "", s.config.Log)
	if err != nil {
		return errors.Join(err, people.Close())
	}
	begin(func() error { return front.Serve(ctx, people, files.Certificate) })
	if d.Machines != "" {
		machines, err := socketdir.ListenPrivate(ctx, d.Machines)
		if err != nil {
			return fmt.Errorf("listening for machines' requests of STS and IAM: %w", err)
		}
		begin(func() error { return front.ServeMachines(ctx, machines, files.Certificate) })
	}
	for socket, peers := range map[string]func(uint32) bool{d.Identity: d.Peers, d.Metadata: nil} {
		keys, err := keyservice.NewServer(keyservice.ServerConfig{
			Backend: s, Credential: d.Account, Credentials: socket == d.Metadata, Clusters: d.Here, Peers: peers, Logger: s.config.Log,
		})
		if err != nil {
			return err
		}
		listener, err := keys.Listen(ctx, socket)
		if err != nil {
			return err
		}
		begin(func() error { return keys.Serve(ctx, listener) })
	}
	begin(func() error { return registrylogin.Serve(ctx, d.Login, s, s.config.Log) })
	return nil
}
