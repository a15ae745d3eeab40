// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/iam/identity"
)

// Where the mode is recorded, in the authenticator's own namespace.
const (
	ModeConfigMap = "muster-authenticator"
	modeKey       = "authenticationMode"
)

// ErrMode means that the mode cannot be had: trying again does not help.
var ErrMode = errors.New("authentication mode refused")

// RecordMode writes down the mode that counts from now on. Modes go one way, as on EKS: after somebody's access entry
// was removed, an old aws-auth must not let them in again. Going back is refused.
func RecordMode(ctx context.Context, client kubernetes.Interface, namespace string, mode identity.Mode) error {
	order := []identity.Mode{identity.ModeConfigMap, identity.ModeAPIAndConfigMap, identity.ModeAPI}
	want := slices.Index(order, mode)
	if want < 0 {
		return fmt.Errorf("%w: there is no %q; there are %v", ErrMode, mode, order)
	}
	maps := client.CoreV1().ConfigMaps(namespace)
	for {
		have, err := maps.Get(ctx, ModeConfigMap, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			_, err = maps.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: ModeConfigMap, Namespace: namespace, Labels: map[string]string{"app.kubernetes.io/part-of": "muster"}},
				Data:       map[string]string{modeKey: string(mode)},
			}, metav1.CreateOptions{})
		case err != nil:
		default:
			recorded := slices.Index(order, identity.Mode(have.Data[modeKey]))
			switch {
			case recorded > want:
				return fmt.Errorf("%w: it is %s already (ConfigMap %s/%s) and goes one way: going back to %s would again admit "+
					"principals that only access entries keep out. Set mapping.mode to %[2]s; to go back all the same, delete that ConfigMap",
					ErrMode, order[recorded], namespace, ModeConfigMap, mode)
			case recorded == want:
				return nil
			case recorded < 0 && have.Data[modeKey] != "":
				return fmt.Errorf("%w: the ConfigMap %s/%s says %.64q, which there is not: set it to one of %v", ErrMode, namespace, ModeConfigMap, have.Data[modeKey], order)
			}
			if have.Data == nil {
				have.Data = map[string]string{}
			}
			have.Data[modeKey] = string(mode)
			_, err = maps.Update(ctx, have, metav1.UpdateOptions{})
		}
		switch {
		case err == nil:
			return nil
		case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err): // these mean that another replica was faster
			return fmt.Errorf("recording the authentication mode in ConfigMap %s/%s: %w", namespace, ModeConfigMap, err)
		}
	}
}
