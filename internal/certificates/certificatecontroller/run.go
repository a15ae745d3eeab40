// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"muster.dev/muster/internal/certificates/csrcontroller"
	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/nodeauthorizer"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/policyconfig"
)

// Config is what the certificate controller is started with.
type Config struct {
	// Kubeconfig of the cluster whose requests are decided; empty in a pod of it.
	Kubeconfig string
	Policy     policyconfig.Configuration
	Logger     *slog.Logger
}

// assembled are the parts of a running certificate controller.
type assembled struct {
	config     Config
	client     kubernetes.Interface
	controller *csrcontroller.Controller
	server     *csrcontroller.Server
	authorizer *nodeauthorizer.Server // nil if no API server asks
	machines   map[string]nodeauthorizer.Machines
	registry   *prometheus.Registry
	refused    atomic.Pointer[error] // why this replica cannot lead
	// background runs beside the controller, on replicas that stand by as well.
	background []func(context.Context)
	// leading runs only while this replica leads.
	leading []func(context.Context)
	cleanup []func()
}

// Run decides until ctx is done.
func Run(ctx context.Context, config Config) error {
	a := &assembled{config: config, registry: prometheus.NewRegistry(), machines: map[string]nodeauthorizer.Machines{}}
	defer func() {
		for _, f := range a.cleanup {
			f()
		}
	}()
	if err := a.assemble(ctx); err != nil {
		return err
	}
	trim(config.Logger)
	paceGarbage()
	config.Logger.Info("certificate controller starts", "mode", config.Policy.Mode, "signers", len(config.Policy.Signers),
		"rules", len(policy.RuleIDs()), "health_address", a.server.HealthAddress(), "metrics_address", a.server.MetricsAddress())
	err := a.run(ctx)
	config.Logger.Info("certificate controller ended")
	return err
}

func (a *assembled) assemble(ctx context.Context) error {
	file, logger := a.config.Policy, a.config.Logger
	rest, err := connection(a.config.Kubeconfig)
	if err != nil {
		return err
	}
	if a.client, err = client(rest); err != nil {
		return err
	}
	rules, err := a.rules(ctx)
	if err != nil {
		return err
	}
	signers, err := a.signers(ctx)
	if err != nil {
		return err
	}
	access, err := facts.NewAccess(facts.AccessConfig{
		Reviewer: a.client.AuthorizationV1().SubjectAccessReviews(), PerIdentity: file.Rules.AccessReview.PerIdentity,
	})
	if err != nil {
		return err
	}
	// Sources and register call it once they run, which is later.
	changed := func(c facts.Change) { a.controller.Changed(c) }
	inventory, err := a.inventory(ctx, rest, changed)
	if err != nil {
		return err
	}
	names, err := facts.NodeNames(rest)
	if err != nil {
		return err
	}
	nodes, err := facts.NewNodes(facts.NodesConfig{Objects: names, OnChange: changed, Logger: logger})
	if err != nil {
		return err
	}
	records, err := issued.New(issued.Config{
		Client: a.client, Namespace: file.Register.Namespace, Signers: file.SignerNames(), MachineOf: csrcontroller.MachineOf, MachineOfNode: inventory.MachineOfNode,
		OnChange: changed, Logger: logger, ReadOnly: file.Mode == policyconfig.ModeObserve,
	})
	if err != nil {
		return err
	}
	a.background = append(a.background, inventory.Run, nodes.Run)
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	writer, err := written(rest, a.client, logger)
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	telling, over := context.WithCancel(ctx)
	a.cleanup = append(a.cleanup, over, broadcaster.Shutdown)
	broadcaster.StartRecordingToSink(&sink{
		EventSink: &typedcorev1.EventSinkImpl{Interface: a.client.CoreV1().Events("")},
		ctx:       telling, await: func(ctx context.Context) bool { return a.controller.AwaitLease(ctx) == nil },
	})
	serving, err := a.serving(changed)
	if err != nil {
		return err
	}
	a.controller, err = csrcontroller.New(csrcontroller.Config{
		Client: a.client, Writer: writer, Signers: signers, Mode: csrcontroller.Mode(file.Mode), Policy: rules,
		Inventory: inventory, Access: access, Nodes: nodes, Register: records, Serving: serving,
		Events:  broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "certificate-controller"}),
		Metrics: a.registry, Logger: logger, Keep: file.Pruning.Keep, Workers: file.Workers, MostWorkers: mostWorkers(writer), Grace: file.Grace(),
	})
	if err != nil {
		return err
	}
	if err := a.publishTrust(ctx, signers); err != nil {
		return err
	}
	a.server, err = csrcontroller.Listen(ctx, csrcontroller.ServerConfig{
		Health: file.Health.BindAddress, Metrics: file.Metrics.BindAddress, CertFile: file.Metrics.Certificate, KeyFile: file.Metrics.Key, ClientCA: file.Metrics.ClientCA,
		Client: a.client, Gatherer: a.registry, Ready: a.ready, Logger: logger,
	})
	if err != nil {
		return err
	}
	return a.authorize(ctx, records)
}

// ready counts it, too, if this replica is not let lead: a rollout must not replace one that leads by one that cannot.
func (a *assembled) ready() error {
	if refused := a.refused.Load(); refused != nil && *refused != nil {
		return *refused
	}
	return a.controller.Ready()
}

// run ends when ctx does, or when a part cannot go on: the program's supervisor starts it again.
func (a *assembled) run(ctx context.Context) error {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// The controller's dependencies go on until it has ended.
	beside, over := context.WithCancel(context.WithoutCancel(ctx))
	defer over()
	var group sync.WaitGroup
	for _, f := range append(a.background, a.controller.Watch) {
		group.Go(func() { f(beside) })
	}
	group.Go(func() {
		if err := a.server.Serve(beside); err != nil {
			stop(err)
		}
	})
	if a.authorizer != nil {
		group.Go(func() {
			if err := a.authorizer.Serve(beside); err != nil {
				stop(err)
			}
		})
	}
	err := a.lead(running)
	over()
	group.Wait()
	if cause := context.Cause(running); err == nil && ctx.Err() == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

func (a *assembled) lead(ctx context.Context) error {
	lead := func(ctx context.Context) {
		var group sync.WaitGroup
		for _, f := range a.leading {
			group.Go(func() { f(ctx) })
		}
		a.controller.Lead(ctx)
		group.Wait()
	}
	if !a.config.Policy.Elects() {
		lead(ctx)
		return nil
	}
	election := a.config.Policy.LeaderElection
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming this replica: %w", err)
	}
	return csrcontroller.Elect(ctx, csrcontroller.Election{
		Client: a.client, Namespace: election.Namespace, Name: election.Name,
		Identity: host + "_" + uuid.NewString(), Logger: a.config.Logger,
		Refused: func(err error) { a.refused.Store(&err) }, Renewed: a.controller.Renewed,
	}, lead)
}
