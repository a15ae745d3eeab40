// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/platform/watchretry"
)

// The ConfigMap that EKS reads.
const (
	awsAuthNamespace = "kube-system"
	awsAuthName      = "aws-auth"
)

// AccessEntries lists and watches access entries.
func AccessEntries(config *rest.Config) (cache.ListerWatcher, error) {
	return customObjects(config, accessv1alpha1.GroupVersion, accessv1alpha1.AddToScheme, "accessentries")
}

// IdentityMappings lists and watches IAMIdentityMapping objects.
func IdentityMappings(config *rest.Config) (cache.ListerWatcher, error) {
	return customObjects(config, iamv1alpha1.GroupVersion, iamv1alpha1.AddToScheme, "iamidentitymappings")
}

func customObjects(config *rest.Config, version schema.GroupVersion, add func(*runtime.Scheme) error, resource string) (cache.ListerWatcher, error) {
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		return nil, fmt.Errorf("registering kinds of %s: %w", version, err)
	}
	metav1.AddToGroupVersion(scheme, version)
	c := rest.CopyConfig(config)
	watchretry.Wrap(c)
	c.GroupVersion = &version
	c.APIPath = "/apis"
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON // custom resources have no protobuf
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", resource, err)
	}
	return cache.NewListWatchFromClient(client, resource, metav1.NamespaceAll, fields.Everything()), nil
}

// AWSAuth lists and watches the ConfigMap kube-system/aws-auth alone: the authenticator may read no other.
func AWSAuth(client kubernetes.Interface) cache.ListerWatcher {
	maps := client.CoreV1().ConfigMaps(awsAuthNamespace)
	only := fields.OneTermEqualSelector("metadata.name", awsAuthName).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			return maps.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			return maps.Watch(ctx, o)
		},
	}
}

// kindOf tells what an IAMIdentityMapping names. Anything else is reported by the table, as an invalid role.
func kindOf(name string) identity.Kind {
	if a, err := arn.Parse(name); err == nil {
		if _, _, ok := a.Role(); ok {
			return identity.KindRole
		}
		return identity.KindUser
	}
	if strings.Contains(name, ":user/") {
		return identity.KindUser
	}
	return identity.KindRole
}
