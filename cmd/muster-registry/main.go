// SPDX-License-Identifier: Apache-2.0

// Muster-registry serves the account's images: for people on a loopback port, for machines by the relays of VPCs. It is a
// program of its own because it runs all the time: little is linked into it, and its pages and what packages make when a
// program starts are its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/iam/registrylogin"
	"muster.dev/muster/internal/image/pulledstore"
	"muster.dev/muster/internal/image/pullthrough"
	"muster.dev/muster/internal/image/pullthroughconfig"
	"muster.dev/muster/internal/image/registry"
	"muster.dev/muster/internal/image/registrystore"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/platform/httpserve"
	"muster.dev/muster/internal/platform/statedir"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var stateDir, account, in, certificate string
	var listen netip.AddrPort
	flags := flag.NewFlagSet("muster-registry", flag.ContinueOnError)
	flags.StringVar(&stateDir, "state-dir", statedir.Default(), "directory of everything muster keeps")
	flags.StringVar(&account, "account", "", "id of the account")
	flags.StringVar(&in, "region", "", "region of the account")
	flags.StringVar(&certificate, "certificate", "", "file with the certificate and key")
	flags.TextVar(&listen, "listen", listen, "IP address and port on loopback for people")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := statedir.Open(stateDir)
	if err != nil {
		return err
	}
	at, err := region.Find(in)
	if err != nil {
		return fmt.Errorf("-region: %w", err)
	}
	s := server{dir: dir, log: slog.New(slog.NewTextHandler(os.Stderr, nil)), metrics: prometheus.NewRegistry(), store: registrystore.New(dir.Registry())}
	files, err := httpserve.ReadFiles("the image registry", certificate, certificate, "", s.log)
	if err != nil {
		return err
	}
	s.tls = files.Config()
	s.people, err = registry.New(registry.Config{
		Store: s.store, Account: registrylogin.NewClient(dir.RegistryLoginSocket()), ID: account, Region: in, Metrics: s.metrics, Log: s.log,
	})
	if err != nil {
		return err
	}
	if s.machines, err = s.pullThrough(ctx, at.RegistryName(account)); err != nil {
		return err
	}
	return s.run(ctx, listen)
}

// pullThrough has machines pull images of public registries, too. The name is the registry's own.
func (s *server) pullThrough(ctx context.Context, own string) (http.Handler, error) {
	store, err := pulledstore.Open(s.dir.PulledImages())
	if err != nil {
		return nil, err
	}
	return pullthrough.New(ctx, pullthrough.Config{
		Store: store, VPC: registry.VPC, Refuse: pullthrough.Refuse, Own: own, Next: s.people, Metrics: s.metrics, Log: s.log,
		Settings: func() (settings pullthrough.Settings, err error) {
			if settings.Config, err = pullthroughconfig.Read(s.dir.Registries()); err == nil {
				settings.Proxy, err = pullthroughconfig.ReadProxy(s.dir.Proxy())
			}
			return settings, err
		},
		Egress: func(id string) (e pullthrough.Egress, err error) {
			network, err := vpc.Open(s.dir.VPCs(), id)
			if err == nil {
				e.Policy, e.Own, err = network.Egress()
			}
			return e, err
		},
	})
}
