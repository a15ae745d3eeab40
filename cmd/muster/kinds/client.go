// SPDX-License-Identifier: Apache-2.0

package kinds

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

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
)

// AnswerTime is the timeout of one request to an API server.
const AnswerTime = 15 * time.Second

// TheCluster is the name of a cluster's API server in messages.
const TheCluster = "the cluster"

// Client is a client of one API server, with the name and address that its errors mention.
type Client struct {
	client.WithWatch
	Name, Address string
	Elsewhere     bool // not in the state directory, so no command of muster's starts it
}

// Dialers connect to the API servers of a state directory. Tests put fakes here.
type Dialers struct {
	Management, Cluster func(*terminal.Options) (*Client, error)
}

// NewDialers returns the dialers of the state directory in the options, by the kubeconfigs that the service writes
// there.
func NewDialers() Dialers {
	return Dialers{
		Management: func(o *terminal.Options) (*Client, error) {
			return connect(o, "the management plane", managementKubeconfig)
		},
		Cluster: func(o *terminal.Options) (*Client, error) {
			return connect(o, TheCluster, clusterKubeconfig)
		},
	}
}

// Of returns the dialer of the plane that a kind lives in.
func (p Dialers) Of(k Kind) func(*terminal.Options) (*Client, error) {
	if k.inCluster {
		return p.Cluster
	}
	return p.Management
}

func connect(o *terminal.Options, name string, kubeconfig func(*terminal.Options) (string, error)) (*Client, error) {
	config, err := stateConfig(o, name, kubeconfig)
	if err != nil {
		return nil, err
	}
	return dial(o, name, config)
}

// managementKubeconfig is the way into the management plane of the state directory.
func managementKubeconfig(o *terminal.Options) (string, error) {
	dir, err := o.OpenExisting()
	return dir.ManagementKubeconfig(), err
}

// clusterKubeconfig is the way into the cluster that the options choose.
func clusterKubeconfig(o *terminal.Options) (string, error) {
	cluster, err := o.OpenCluster()
	return cluster.Kubeconfig(), err
}

func stateConfig(o *terminal.Options, name string, kubeconfig func(*terminal.Options) (string, error)) (*rest.Config, error) {
	path, err := kubeconfig(o)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has never run in %s: `muster up` starts it", name, o.StateDir)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading the way into %s: %w", name, err)
	}
	return config, nil
}

func dial(o *terminal.Options, name string, config *rest.Config) (*Client, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	return dialFor(o, name, config, client.Options{Scheme: scheme, Mapper: NewMapper()})
}

// dialFor is dial for the kinds that the client is to know.
func dialFor(o *terminal.Options, name string, config *rest.Config, kinds client.Options) (*Client, error) {
	config.QPS = -1 // one person's few requests need no rate limit
	config.WarningHandler = rest.NewWarningWriter(o.Err, rest.WarningWriterOptions{Deduplicate: true})
	c, err := client.NewWithWatch(config, kinds)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", name, err)
	}
	return &Client{WithWatch: c, Name: name, Address: strings.TrimPrefix(config.Host, "https://")}, nil
}

// NewScheme returns a scheme with the kinds that commands read and write.
func NewScheme() (*runtime.Scheme, error) {
	return schemeOf(groupKinds{
		v1alpha1.GroupVersion: v1alpha1.AddToScheme, corev1.SchemeGroupVersion: corev1.AddToScheme, certificatesv1.SchemeGroupVersion: certificatesv1.AddToScheme,
		discoveryv1.SchemeGroupVersion: discoveryv1.AddToScheme, admissionregistrationv1.SchemeGroupVersion: admissionregistrationv1.AddToScheme, rbacv1.SchemeGroupVersion: rbacv1.AddToScheme,
		coordinationv1.SchemeGroupVersion: coordinationv1.AddToScheme,
	})
}

// groupKinds are functions that register the kinds of an API group.
type groupKinds map[schema.GroupVersion]func(*runtime.Scheme) error

func schemeOf(kinds groupKinds) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for group, add := range kinds {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering the kinds of %s: %w", group, err)
		}
	}
	return scheme, nil
}

// NewMapper returns a mapper of the kinds of NewScheme, so that no command has to ask the API server for its kinds.
func NewMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	v1alpha1.AddToMapper(mapper)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolume"), meta.RESTScopeRoot)
	mapper.Add(SnapshotContents(), meta.RESTScopeRoot)
	mapper.Add(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), meta.RESTScopeRoot)
	mapper.Add(admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"), meta.RESTScopeRoot)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), meta.RESTScopeRoot)
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, meta.RESTScopeRoot)
	mapper.Add(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"), meta.RESTScopeRoot)
	return mapper
}

// SnapshotContents is the kind of the contents of snapshots, which a cluster has if somebody has installed it.
func SnapshotContents() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshotContent"}
}

// ReadAll reads all objects of a kind.
func (p *Client) ReadAll(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, AnswerTime)
	defer cancel()
	return p.Explain(p.List(ctx, into, opts...))
}

// Read reads one object that has no namespace. The error works with apierrors.IsNotFound.
func (p *Client) Read(ctx context.Context, name string, into client.Object) error {
	return p.ReadKey(ctx, client.ObjectKey{Name: name}, into)
}

// ReadKey is Read for any object.
func (p *Client) ReadKey(ctx context.Context, key client.ObjectKey, into client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, AnswerTime)
	defer cancel()
	return p.Explain(p.Get(ctx, key, into))
}

// Explain turns an error of the client into one that says what to do; a refused object gets a line for each wrong
// field.
func (p *Client) Explain(err error) error {
	var timeout net.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ECONNREFUSED) && p.Elsewhere:
		return fmt.Errorf("nothing answers at %s, where the kubeconfig says that %s is", p.Address, p.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s is not running (nothing answers at %s): `muster up` starts it", p.Name, p.Address)
	case p.Elsewhere && (errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()):
		return fmt.Errorf("%s does not answer (at %s): %w", p.Name, p.Address, context.DeadlineExceeded)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%s does not answer (at %s): `muster status` shows how it is: %w", p.Name, p.Address, context.DeadlineExceeded)
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

// Within runs a call with a timeout of AnswerTime and explains its error.
func (p *Client) Within(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, AnswerTime)
	defer cancel()
	return p.Explain(call(ctx))
}
