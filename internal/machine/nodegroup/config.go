// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/refusalcause"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/machine/hostroot"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/clusternetwork"
	"muster.dev/muster/internal/platform/release"
)

// Config configures the controllers.
type Config struct {
	// ClusterName is the spec.name of the one cluster that this service runs. The controllers act on the NodeGroups in
	// its namespace and on the Machines that name it.
	ClusterName string
	// Release is the cluster's. Machines of a group that asks for no other are of it.
	Release release.Release
	// Releases are those that machines can be of.
	Releases release.List
	// Unbuilt says what is to be done before machines can be of a release; empty if nothing is.
	Unbuilt func(release.Release) string
	// Cluster is the plane that machines join, made with ClusterOptions. The manager starts it.
	Cluster cluster.Cluster
	// Providers of machines. A machine of a provider that is not here waits.
	Providers machine.Providers
	// Routes of the providers whose machines need their pods' addresses routed.
	Routes map[v1alpha1.Provider]Routes
	// Network is the cluster's. Only ranges of its pods are ever routed.
	Network clusternetwork.Network
	// Usage lists the subnets of the cluster's VPC as they are now.
	Usage func() ([]machine.Usage, error)
	// Room is what the host offers local machines of all clusters. Nil: all that are asked for.
	Room *hostroom.Room
	// UserData renders what a machine boots with; the token is empty for a machine that has joined.
	UserData func(m *v1alpha1.Machine, token string) ([]byte, error)
	// NodeRoles prepare and check the IAM roles of machines that join by role; without them a group of such machines
	// waits.
	NodeRoles NodeRoles
	// Admitted has a value when the set of admitted principals may have changed: all machines that joined by role are
	// checked again. Nil: never.
	Admitted <-chan struct{}
	// Refused delivers the refusals of machines' tokens. Nil: none.
	Refused <-chan Heard
	// Cause returns the identifier of the cause that a symptom shows, such as M-NODE-61; "" if it shows none. Nil: messages
	// have no identifiers.
	Cause func(Symptom) string
	// HostRoot reads which clusters may have machines whose root is root on the host. Nil: none may.
	HostRoot func() (hostroot.Clusters, error)
	// Health looks at the cluster.
	Health func(ctx context.Context) Health
	// Authorities carries out a request about kubelets' authorities, unless it is nil or was carried out before, and
	// says what there is. Nil: nobody is asked.
	Authorities func(request *v1alpha1.KubeletAuthorityRequest) ([]v1alpha1.KubeletAuthority, *v1alpha1.KubeletAuthorityAnswer, error)
	// AuditLogs are the paths of the audit logs of the cluster's API servers, from which the steps of joins are read.
	AuditLogs []string

	Log *slog.Logger

	Random  io.Reader        // crypto/rand's if nil
	Now     func() time.Time // the clock if nil
	Boots   *Boots           // paces boots of local machines; all boot at once if nil
	Workers int              // machines brought forward at once; 8 if 0
	Poll    time.Duration    // between looks at the providers' instances; a second if 0

	DrainTime time.Duration // for which a machine that is deleted waits for its pods; 15 minutes if 0
}

// NodeRoles knows the IAM roles that machines are launched with.
type NodeRoles interface {
	// Prepare returns the name of the instance profile that gives machines a role, which is named or an ARN, and makes
	// the entry by which the cluster takes machines with the role for nodes. A *RoleProblem is for people to mend;
	// ErrNotYet goes away in a moment.
	Prepare(ctx context.Context, role string) (instanceProfile string, err error)
	// Tidy removes what Prepare made for groups that are gone.
	Tidy(ctx context.Context) error
	// Check asks the cluster whether it lets a machine in by its role. A *Refusal says that it does not; any other
	// error says that the check failed.
	Check(ctx context.Context, machine *v1alpha1.Machine) error
}

// ErrNotYet says that the identity service has not made its first role, so that no role can be prepared.
var ErrNotYet = errors.New("the identity service has not made its first role yet")

// RoleProblem keeps a role from being that of nodes. Reason is in the words of EKS: IamNodeRoleNotFound,
// IamInstanceProfileNotFound.
type RoleProblem struct{ Reason, Message string }

func (p *RoleProblem) Error() string { return p.Message }

// Refusal says which rule keeps a machine out, what it saw, and what to do.
type Refusal struct{ Rule, Saw, Fix string }

// Error says it in one line, with the identifier of the cause if it is one of docs/causes.md.
func (r *Refusal) Error() string { return refusalcause.Sentence(r.Rule, r.Saw, r.Fix) }

// Heard reports that the cluster refused a token with the session of a machine. Anybody who has the session may have
// sent it.
type Heard struct {
	Machine string
	Refusal
}

// Routes sends packets for a machine's pods to the machine.
type Routes interface {
	// SetRoute is repeated now and then, and is to do nothing if the route is there.
	SetRoute(ctx context.Context, podCIDR netip.Prefix, via netip.Addr) error
	// DeleteRoute succeeds if there is no such route.
	DeleteRoute(ctx context.Context, podCIDR netip.Prefix) error
}

// Health is the last observation of a cluster.
type Health struct {
	Endpoint        string
	PrivateEndpoint string
	Version         string
	Issuer          string                      // of service account tokens
	Authority       string                      // of the API server's certificate, PEM in base64
	Refused         string                      // why it was not changed to what its object asks for; empty if it was
	Generation      int64                       // of the object that it follows, or that was refused; 0 if it is not known yet
	Mode            v1alpha1.AuthenticationMode // that its components were configured with
	SecurityGroups  []string                    // that decide about packets of its API server's addresses; nil without a VPC
	Err             error                       // why it is not ready; nil if it is
	Conditions      []metav1.Condition          // that it has beside Ready, without generation and time
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.ClusterName == "":
		return c, errors.New("the node group controllers need the cluster's name")
	case c.Cluster == nil:
		return c, errors.New("the node group controllers need the cluster that machines join")
	case c.UserData == nil:
		return c, errors.New("the node group controllers need a way to render user data")
	case c.Health == nil:
		return c, errors.New("the node group controllers need a health check of the cluster")
	case len(c.AuditLogs) == 0:
		return c, errors.New("the node group controllers need the paths of the audit logs")
	case c.Log == nil:
		return c, errors.New("the node group controllers need a logger")
	case c.Usage == nil || c.Network.VPCID == "":
		return c, errors.New("the node group controllers need the cluster's network and its subnets")
	case len(c.Routes) > 0 && !c.Network.PodCIDR.IsValid():
		return c, errors.New("the node group controllers need the range of pods, to route it")
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Workers <= 0 {
		c.Workers = 8
	}
	if c.Poll <= 0 {
		c.Poll = time.Second
	}
	if c.DrainTime <= 0 {
		c.DrainTime = v1alpha1.MaxDrainTimeout
	}
	return c, nil
}

// Scheme knows the kinds of both planes that the controllers use.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering Kubernetes' kinds: %w", err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering muster's kinds: %w", err)
	}
	return scheme, nil
}

// ClusterOptions makes the cluster's cache hold what the controllers read and no more: of Secrets only machines'
// tokens, and of Nodes not the long lists of images. The cluster need not be up when it is made: it serves the
// kinds it always serves.
func ClusterOptions(options *cluster.Options) {
	tokens := labels.NewSelector()
	if ofMachines, err := labels.NewRequirement(v1alpha1.LabelMachine, selection.Exists, nil); err == nil {
		tokens = tokens.Add(*ofMachines)
	}
	options.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return staticMapper(), nil }
	options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	options.Cache.ByObject = map[client.Object]cache.ByObject{
		&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{metav1.NamespaceSystem: {LabelSelector: tokens}},
		},
		&corev1.Node{}: {Transform: slimNode},
		&certificatesv1.CertificateSigningRequest{}: {Transform: slimRequest},
	}
}

func staticMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range map[schema.GroupVersionKind]meta.RESTScope{
		corev1.SchemeGroupVersion.WithKind("Secret"):                            meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("Pod"):                               meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("Node"):                              meta.RESTScopeRoot,
		corev1.SchemeGroupVersion.WithKind("ConfigMap"):                         meta.RESTScopeNamespace,
		certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"): meta.RESTScopeRoot,
		policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"):             meta.RESTScopeNamespace,
	} {
		mapper.Add(kind, scope)
		mapper.Add(kind.GroupVersion().WithKind(kind.Kind+"List"), scope) // the cache asks for lists by this name
	}
	return mapper
}

// slimRequest leaves of a request for a certificate whose it is while it has no answer, and that it has one. There are two
// for each node, for an hour.
func slimRequest(object any) (any, error) {
	if csr, ok := object.(*certificatesv1.CertificateSigningRequest); ok {
		csr.ManagedFields, csr.Spec.Request, csr.Spec.Extra = nil, nil, nil
		if answered(csr) {
			csr.Spec = certificatesv1.CertificateSigningRequestSpec{}
		}
		if len(csr.Status.Certificate) > 0 {
			csr.Status.Certificate = issuedMark
		}
	}
	return object, nil
}

// issuedMark stands for a certificate that was issued.
var issuedMark = []byte{0}

func slimNode(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		node.ManagedFields = nil
		node.Status.Images = nil
	}
	return object, nil
}
