// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/state"
)

// answerTime is how long an API server may take over one request.
const answerTime = 15 * time.Second

// plane is an API server and what people call it.
type plane struct {
	client.WithWatch
	name, address string
	elsewhere     bool // not in the state directory, so no command of muster's starts it
}

// planes are the ways to the API servers of a state directory. Tests put fakes here.
type planes struct {
	management, cluster func(*options) (*plane, error)
}

func realPlanes() planes {
	return planes{
		management: func(o *options) (*plane, error) {
			return connect(o, "the management plane", state.Dir.ManagementKubeconfig)
		},
		cluster: func(o *options) (*plane, error) { return connect(o, theCluster, state.Dir.ClusterKubeconfig) },
	}
}

func connect(o *options, name string, kubeconfig func(state.Dir) string) (*plane, error) {
	config, err := stateConfig(o, name, kubeconfig)
	if err != nil {
		return nil, err
	}
	return dial(o, name, config)
}

func stateConfig(o *options, name string, kubeconfig func(state.Dir) string) (*rest.Config, error) {
	dir, err := o.openExisting()
	if err != nil {
		return nil, err
	}
	path := kubeconfig(dir)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has never run in %s: `muster up` starts it", name, dir)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading the way into %s: %w", name, err)
	}
	return config, nil
}

// access is how a command that works with any cluster finds it.
type access struct{ kubeconfig, context string }

func (a *access) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&a.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; default: the cluster of the state directory if there is one, else as kubectl")
	flags.StringVar(&a.context, "context", "", "context of the kubeconfig")
}

// connect reaches the cluster that the flags name.
func (a *access) connect(o *options) (*plane, error) {
	config, elsewhere, err := a.find(o)
	if err != nil {
		return nil, err
	}
	p, err := dial(o, theCluster, config)
	if err != nil {
		return nil, err
	}
	p.elsewhere = elsewhere
	return p, nil
}

// theCluster is what people call it.
const theCluster = "the cluster"

// config is the way into the cluster that the flags name.
func (a *access) config(o *options) (*rest.Config, error) {
	config, _, err := a.find(o)
	return config, err
}

// find is config, and tells whether that cluster is another than the state directory's.
func (a *access) find(o *options) (config *rest.Config, elsewhere bool, err error) {
	if a.kubeconfig == "" && a.context == "" {
		dir, err := o.open()
		switch {
		case err != nil && o.named(): // it is not left aside for whichever cluster kubectl would take
			return nil, false, err
		case err == nil && dir.Exists():
			config, err := stateConfig(o, theCluster, state.Dir.ClusterKubeconfig)
			return config, false, err
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.kubeconfig
	config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: a.context}).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		err = fmt.Errorf("nothing is set up in %s, and kubectl knows no cluster either; `muster up` makes one", o.stateDir)
		fallthrough
	case err != nil:
		return nil, true, fmt.Errorf("finding the cluster (name it with --kubeconfig or --context): %w", err)
	}
	return config, true, nil
}

func dial(o *options, name string, config *rest.Config) (*plane, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return dialFor(o, name, config, client.Options{Scheme: scheme, Mapper: newMapper()})
}

// dialFor is dial for the kinds that the client is to know.
func dialFor(o *options, name string, config *rest.Config, kinds client.Options) (*plane, error) {
	config.QPS = -1 // one person's few requests need no rate limit
	config.WarningHandler = rest.NewWarningWriter(o.err, rest.WarningWriterOptions{Deduplicate: true})
	c, err := client.NewWithWatch(config, kinds)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", name, err)
	}
	return &plane{WithWatch: c, name: name, address: strings.TrimPrefix(config.Host, "https://")}, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme, certificatesv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	return scheme, nil
}

// newMapper knows the kinds that commands deal with, which saves asking the API server for what it has.
func newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Cluster", "NodeGroup", "Machine", "IAMRole"} {
		mapper.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"), meta.RESTScopeRoot)
	return mapper
}

// list reads all objects of a kind.
func (p *plane) list(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return p.explain(p.List(ctx, into, opts...))
}

// get reads one object. An error can be asked with apierrors.IsNotFound.
func (p *plane) get(ctx context.Context, name string, into client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return p.explain(p.Get(ctx, client.ObjectKey{Name: name}, into))
}

// explain puts what went wrong into one line that says what to do.
func (p *plane) explain(err error) error {
	var timeout net.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ECONNREFUSED) && p.elsewhere:
		return fmt.Errorf("nothing answers at %s, where the kubeconfig says that %s is", p.address, p.name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s is not running (nothing answers at %s): `muster up` starts it", p.name, p.address)
	case p.elsewhere && (errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()):
		return fmt.Errorf("%s does not answer (at %s): %w", p.name, p.address, context.DeadlineExceeded)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%s does not answer (at %s): `muster status` shows how it is: %w", p.name, p.address, context.DeadlineExceeded)
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case apierrors.IsInvalid(err):
		return invalid(err)
	}
	return err
}

// invalid turns the refusal of an object into a line for each field that is wrong.
func invalid(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	details := status.Status().Details
	var lines []string
	for _, cause := range details.Causes {
		if cause.Field == "<nil>" { // "some validation rules were not checked": the other lines say why
			continue
		}
		message := cause.Message
		for _, noise := range []string{`Invalid value: "object": `, `Invalid value: "array": `, `Invalid value: "string": `} {
			message = strings.TrimPrefix(message, noise)
		}
		message = strings.ReplaceAll(message, cause.Field+" in body ", "")
		line := message
		if cause.Field != "" {
			line = cause.Field + ": " + message
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	what := strings.ToLower(details.Kind)
	switch len(lines) {
	case 0:
		return err
	case 1:
		return fmt.Errorf("%s %q is not valid: %s", what, details.Name, lines[0])
	}
	return fmt.Errorf("%s %q is not valid:\n  %s", what, details.Name, strings.Join(lines, "\n  "))
}
