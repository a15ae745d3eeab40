// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"muster.dev/muster/internal/certificates"
	"muster.dev/muster/internal/facts"
	"muster.dev/muster/internal/policy"
	"muster.dev/muster/internal/signer"
)

// certificateControllerFlags are the flags of muster certificate-controller.
type certificateControllerFlags struct {
	kubeconfig, inventoryKubeconfig string
	clusterName                     string
	signingCert, signingKey         string
	clientDuration, servingDuration time.Duration
	clusterDomain                   string
	reservedNames, reservedCIDRs    []string
	metricsAddress                  string
	workers                         int
	grace                           time.Duration
}

func newCertificateControllerCommand() *cobra.Command {
	var f certificateControllerFlags
	cmd := &cobra.Command{
		Use:   "certificate-controller",
		Short: "Approve and sign the certificate requests of kubelets",
		Long: `Approve and sign the certificate requests of kubelets, client and serving.

A request is approved only if its names and addresses are those that the machine provider assigned to
the machine that asks. It is denied if it can never be; it waits if a fact is missing. Each decision is
logged with every rule, counted in a metric, and told in an Event on the request.`,
		Example: `  muster certificate-controller \
    --kubeconfig cluster.kubeconfig --inventory-kubeconfig management.kubeconfig \
    --signing-cert ca.crt --signing-key ca.key --metrics-bind-address 127.0.0.1:9443`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return f.run(cmd.Context(), logger)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster whose requests are decided")
	flags.StringVar(&f.inventoryKubeconfig, "inventory-kubeconfig", "", "kubeconfig of the management plane, which holds the Machines")
	flags.StringVar(&f.clusterName, "cluster-name", "", "believe only Machines of this Cluster; empty: all of them")
	flags.StringVar(&f.signingCert, "signing-cert", "", "PEM file with the signing certificate; reloaded when it changes")
	flags.StringVar(&f.signingKey, "signing-key", "", "PEM file with its private key; may be the same file")
	flags.DurationVar(&f.clientDuration, "client-duration", 168*time.Hour, "how long client certificates are good for")
	flags.DurationVar(&f.servingDuration, "serving-duration", 168*time.Hour, "how long serving certificates are good for")
	flags.StringVar(&f.clusterDomain, "cluster-domain", "cluster.local", "DNS domain of Services, in which no node may have a name")
	flags.StringSliceVar(&f.reservedNames, "reserved-name", nil, "DNS name that no node may have, such as one of the API server; repeatable")
	flags.StringSliceVar(&f.reservedCIDRs, "reserved-cidr", []string{"10.100.0.0/16", "192.168.64.1/32", "192.168.64.2/32"},
		"addresses that no node may have, such as those of Services, the router and the API server; repeatable")
	flags.StringVar(&f.metricsAddress, "metrics-bind-address", "127.0.0.1:0", "loopback address of /healthz, /readyz and /metrics; port 0 takes any, and the log says which")
	flags.IntVar(&f.workers, "workers", 16, "requests handled at once")
	flags.DurationVar(&f.grace, "shutdown-grace", 10*time.Second, "how long requests in hand may take to end when told to stop")
	for _, name := range []string{"kubeconfig", "inventory-kubeconfig", "signing-cert", "signing-key"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // a flag that was defined above
		}
	}
	return cmd
}

func (f certificateControllerFlags) run(ctx context.Context, logger *slog.Logger) error {
	rules, err := f.policy()
	if err != nil {
		return err
	}
	if err := f.checkNumbers(); err != nil {
		return err
	}
	klog.SetSlogLogger(logger) // client-go logs through klog
	client, err := f.client()
	if err != nil {
		return err
	}
	keys, err := signer.NewFile(signer.FileConfig{CertFile: f.signingCert, KeyFile: f.signingKey, Logger: logger})
	if err != nil {
		return err
	}
	access, err := facts.NewAccess(facts.AccessConfig{Reviewer: client.AuthorizationV1().SubjectAccessReviews()})
	if err != nil {
		return err
	}
	var controller *certificates.Controller // the inventory calls it once it runs, which is later
	inventory, err := f.inventory(logger, func(c facts.Change) { controller.Changed(c) })
	if err != nil {
		return err
	}
	listener, err := certificates.Listen(ctx, f.metricsAddress)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	controller, err = certificates.New(certificates.Config{
		Client: client, Inventory: inventory, Access: access, Signer: keys,
		Events:  broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "certificate-controller"}),
		Metrics: registry, Logger: logger, Policy: rules,
		ClientDuration: f.clientDuration, ServingDuration: f.servingDuration, Workers: f.workers, Grace: f.grace,
	})
	if err != nil {
		_ = listener.Close()
		return err
	}
	logger.Info("certificate controller starts", "metrics_address", listener.Addr().String(), "rules", len(policy.RuleIDs()))

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan struct{}, 2)
	go func() { inventory.Run(ctx); ended <- struct{}{} }()
	go func() {
		if err := certificates.Serve(ctx, listener, registry, controller.Ready); err != nil {
			stop(err)
		}
		ended <- struct{}{}
	}()
	controller.Run(ctx)
	cause := context.Cause(ctx)
	<-ended
	<-ended
	logger.Info("certificate controller ended")
	if errors.Is(cause, context.Canceled) {
		return nil // told to stop
	}
	return cause
}

func (f certificateControllerFlags) policy() (policy.Policy, error) {
	p := policy.Policy{ClusterDomain: f.clusterDomain}
	for _, n := range f.reservedNames {
		p.ReservedNames = append(p.ReservedNames, strings.ToLower(strings.TrimSuffix(n, ".")))
	}
	for _, text := range f.reservedCIDRs {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return p, fmt.Errorf("--reserved-cidr %q is not a network such as 10.100.0.0/16 or 192.168.64.2/32", text)
		}
		p.ReservedAddresses = append(p.ReservedAddresses, prefix.Masked())
	}
	return p, nil
}

func (f certificateControllerFlags) checkNumbers() error {
	const least = 10 * time.Minute
	switch {
	case f.clientDuration < least:
		return fmt.Errorf("--client-duration is %s; it must be %s or more", f.clientDuration, least)
	case f.servingDuration < least:
		return fmt.Errorf("--serving-duration is %s; it must be %s or more", f.servingDuration, least)
	case f.workers < 1:
		return fmt.Errorf("--workers is %d; it must be 1 or more", f.workers)
	case f.grace <= 0:
		return fmt.Errorf("--shutdown-grace is %s; it must be more than nothing", f.grace)
	}
	return nil
}

func (f certificateControllerFlags) inventory(logger *slog.Logger, changed func(facts.Change)) (*facts.Inventory, error) {
	config, err := f.connect(f.inventoryKubeconfig)
	if err != nil {
		return nil, err
	}
	source, err := facts.Machines(config)
	if err != nil {
		return nil, err
	}
	return facts.NewInventory(facts.InventoryConfig{Source: source, ClusterName: f.clusterName, Logger: logger}, changed)
}

func (f certificateControllerFlags) client() (*kubernetes.Clientset, error) {
	config, err := f.connect(f.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client from %s: %w", f.kubeconfig, err)
	}
	return client, nil
}

// connect reads a kubeconfig. The client's own limits are off: the API server's flow control knows better how busy it is.
func (certificateControllerFlags) connect(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1
	config.UserAgent = "muster-certificate-controller"
	return config, nil
}
