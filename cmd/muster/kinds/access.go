// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamauthenticatorv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
)

// Access is the choice of a cluster by --kubeconfig and --context, for commands that work with any cluster. Without
// them it is the cluster of the state directory if there is one, and otherwise the one that kubectl would take.
type Access struct{ kubeconfig, context string }

// AddFlags adds --kubeconfig and --context.
func (a *Access) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&a.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; default: the cluster of the state directory if there is one, else as kubectl")
	flags.StringVar(&a.context, "context", "", "context of the kubeconfig")
}

// Named reports whether a flag names a cluster.
func (a *Access) Named() bool { return a.kubeconfig != "" || a.context != "" }

// Connect returns a client of the cluster that the flags name.
func (a *Access) Connect(o *terminal.Options) (*Client, error) {
	config, elsewhere, err := a.Find(o)
	if err != nil {
		return nil, err
	}
	p, err := dial(o, TheCluster, config)
	if err != nil {
		return nil, err
	}
	p.Elsewhere = elsewhere
	return p, nil
}

// AuthReader connects to the cluster with a client for the kinds of NewAuthScheme.
func (a *Access) AuthReader(o *terminal.Options) (*Client, error) {
	config, elsewhere, err := a.Find(o)
	if err != nil {
		return nil, err
	}
	scheme, err := NewAuthScheme()
	if err != nil {
		return nil, err
	}
	mapper := NewMapper().(*meta.DefaultRESTMapper) //nolint:forcetypeassert // it is made a few lines away
	mapper.Add(accessv1alpha1.GroupVersion.WithKind("AccessEntry"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)
	mapper.Add(iamauthenticatorv1alpha1.GroupVersion.WithKind("IAMIdentityMapping"), meta.RESTScopeRoot)
	p, err := dialFor(o, TheCluster, config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	p.Elsewhere = elsewhere
	return p, nil
}

// NewAuthScheme returns a scheme with the kinds that entries of an identity are kept in: AccessEntry,
// IAMIdentityMapping and ConfigMap, and with service accounts.
func NewAuthScheme() (*runtime.Scheme, error) {
	return schemeOf(groupKinds{
		corev1.SchemeGroupVersion: corev1.AddToScheme, accessv1alpha1.GroupVersion: accessv1alpha1.AddToScheme,
		iamauthenticatorv1alpha1.GroupVersion: iamauthenticatorv1alpha1.AddToScheme,
	})
}

// config returns the client configuration of the cluster that the flags name.
func (a *Access) config(o *terminal.Options) (*rest.Config, error) {
	config, _, err := a.Find(o)
	return config, err
}

// Find returns the client configuration of the cluster that the flags name, and reports whether that cluster is another
// than the state directory's.
func (a *Access) Find(o *terminal.Options) (config *rest.Config, elsewhere bool, err error) {
	if a.kubeconfig == "" && a.context == "" {
		dir, err := o.Open()
		switch {
		case err != nil && o.Named(): // it is not left aside for whichever cluster kubectl would take
			return nil, false, err
		case err == nil && dir.Exists():
			config, err := stateConfig(o, TheCluster, clusterKubeconfig)
			return config, false, err
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.kubeconfig
	config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: a.context}).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		err = fmt.Errorf("nothing is set up in %s, and kubectl has no cluster either: `muster up` makes one", o.StateDir)
		fallthrough
	case err != nil:
		return nil, true, fmt.Errorf("finding the cluster (name it with --kubeconfig or --context): %w", err)
	}
	return config, true, nil
}

// Clientset returns a typed client of the cluster that the flags name.
func (a *Access) Clientset(o *terminal.Options) (kubernetes.Interface, error) {
	config, err := a.config(o)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", TheCluster, err)
	}
	return client, nil
}
