// SPDX-License-Identifier: Apache-2.0

package planeclient

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
)

// Scheme knows every kind that the service and its command line speak of.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, group := range []struct {
		name string
		add  func(*runtime.Scheme) error
	}{
		{"Kubernetes", clientgoscheme.AddToScheme},
		{apiextensionsv1.GroupName, apiextensionsv1.AddToScheme},
		{v1alpha1.GroupVersion.Group, v1alpha1.AddToScheme},
		{accessv1alpha1.GroupVersion.Group, accessv1alpha1.AddToScheme},
		{iamv1alpha1.GroupVersion.Group, iamv1alpha1.AddToScheme},
	} {
		if err := group.add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds of %s: %w", group.name, err)
		}
	}
	return scheme, nil
}
