// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/iam/registrylogin"
	"muster.dev/muster/internal/image/pulledstore"
	"muster.dev/muster/internal/image/pullthrough"
	"muster.dev/muster/internal/image/pullthroughconfig"
	"muster.dev/muster/internal/image/registry"
	"muster.dev/muster/internal/image/registrystore"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/platform/httpserve"
	"muster.dev/muster/internal/platform/socketdir"
	"muster.dev/muster/internal/platform/statedir"
)

// NewRegistryCommand returns the hidden command that serves the account's images.
func NewRegistryCommand() *cobra.Command {
	var stateDir, region, certificate string
	var port uint16
	command := &cobra.Command{
		Use:   "registry",
		Short: "Serve the account's images: for people on a loopback port, for machines by the relays of VPCs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := statedir.Open(stateDir)
			if err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(os.Stderr, nil))
			files, err := httpserve.ReadFiles("the image registry", certificate, certificate, "", log)
			if err != nil {
				return err
			}
			metrics, store := prometheus.NewRegistry(), registrystore.New(dir.Registry())
			handler, err := registry.New(registry.Config{
				Store: store, Account: registrylogin.NewClient(dir.RegistryLoginSocket()), ID: component.DefaultAccount, Region: region, Metrics: metrics, Log: log,
			})
			if err != nil {
				return err
			}
			machines, err := pullThrough(cmd.Context(), dir, region, handler, metrics, log)
			if err != nil {
				return err
			}
			return serveRegistry(cmd.Context(), dir, port, files.Config(), handlers{handler, machines}, metrics, store, log)
		},
	}
	flags := command.Flags()
	flags.StringVar(&stateDir, "state-dir", statedir.Default(), "directory of everything muster keeps")
	flags.StringVar(&region, "region", "", "region of the account")
	flags.StringVar(&certificate, "certificate", "", "file with the certificate and key")
	flags.Uint16Var(&port, "port", 0, "loopback port for people")
	return command
}

// handlers answer people and machines.
type handlers struct{ people, machines http.Handler }

// pullThrough has machines pull images of public registries, too.
func pullThrough(ctx context.Context, dir statedir.Dir, in string, own http.Handler, metrics prometheus.Registerer, log *slog.Logger) (http.Handler, error) {
	store, err := pulledstore.Open(dir.PulledImages())
	if err != nil {
		return nil, err
	}
	at, err := region.Find(in)
	if err != nil {
		return nil, fmt.Errorf("--region: %w", err)
	}
	return pullthrough.New(ctx, pullthrough.Config{
		Store: store, VPC: registry.VPC, Refuse: pullthrough.Refuse, Own: at.RegistryName(component.DefaultAccount), Next: own, Metrics: metrics, Log: log,
		Settings: func() (s pullthrough.Settings, err error) {
			if s.Config, err = pullthroughconfig.Read(dir.Registries()); err == nil {
				s.Proxy, err = pullthroughconfig.ReadProxy(dir.Proxy())
			}
			return s, err
		},
		Egress: func(id string) (e pullthrough.Egress, err error) {
			network, err := vpc.Open(dir.VPCs(), id)
			if err == nil {
				e.Policy, e.Own, err = network.Egress()
			}
			return e, err
		},
	})
}

// serveRegistry answers people, machines and the service's questions about readiness until the context or one of the
// three ends.
func serveRegistry(ctx context.Context, dir statedir.Dir, port uint16, config *tls.Config, handle handlers, metrics prometheus.Gatherer, store *registrystore.Store, log *slog.Logger) error {
	people, err := new(net.ListenConfig).Listen(ctx, "tcp", portplan.OnLoopback(int(port)).Listen.String())
	if err != nil {
		return fmt.Errorf("listening for the image registry: %w", err)
	}
	machines, err := socketdir.ListenPrivate(ctx, dir.RegistryMachinesSocket())
	if err != nil {
		return err
	}
	ready, err := socketdir.ListenPrivate(ctx, dir.RegistrySocket())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	for _, part := range []func() error{
		func() error { return registry.Serve(ctx, people, config, handle.people, log) },
		func() error { return registry.ServeRelayed(ctx, machines, config, handle.machines, log) },
		func() error { return serveRegistryHealth(ctx, ready, metrics, log) },
		func() error { registry.Collect(ctx, store, log); return nil },
	} {
		group.Go(func() {
			if err := part(); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	log.Info("the image registry serves", "address", people.Addr().String())
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// serveRegistryHealth answers /readyz, /healthz and /metrics.
func serveRegistryHealth(ctx context.Context, listener net.Listener, metrics prometheus.Gatherer, log *slog.Logger) error {
	mux := http.NewServeMux()
	httpserve.Health(mux, func() error { return nil }) // it serves or has ended; whether the account answers is another's readiness
	mux.Handle("GET /metrics", httpserve.Metrics(metrics, log))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 4 << 10}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the health of the image registry: %w", err)
	}
	return nil
}
