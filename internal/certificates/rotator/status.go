// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"encoding/base64"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/bundle"
	"muster.dev/muster/internal/certificates/rotation"
)

// KubeletAuthorities is what the status of a cluster says of its kubelets' authorities, and of the rotation that waits
// for something.
func KubeletAuthorities(store authority.Store, k authority.Kubelets, waits string, now time.Time) ([]v1alpha1.KubeletAuthority, error) {
	names, r := k.Trusts(), k.Rotation
	if r != nil && !slices.Contains(names, r.Old) {
		names = append(names, r.Old)
	}
	var all []v1alpha1.KubeletAuthority
	for _, name := range names {
		certificate, err := store.KubeletAuthority(name)
		if err != nil {
			return nil, err
		}
		id, err := store.IDOf(k, name)
		if err != nil {
			return nil, err
		}
		told := v1alpha1.KubeletAuthority{
			ID: id, Name: name, Signs: name == k.Signs(), Asked: k.IDs[name] != "", Distribution: v1alpha1.KubeletAuthorityComplete,
			Data: base64.StdEncoding.EncodeToString(bundle.PEM(certificate)), NotBefore: metav1.NewTime(certificate.NotBefore), NotAfter: metav1.NewTime(certificate.NotAfter),
		}
		if r != nil {
			tellRotating(&told, r, waits, now)
		}
		all = append(all, told)
	}
	return all, nil
}

// tellRotating adds what a rotation makes of an authority.
func tellRotating(told *v1alpha1.KubeletAuthority, r *rotation.Rotation, waits string, now time.Time) {
	switch {
	case r.Phase == rotation.Trust && told.Name == r.New:
		told.Message, told.Removable = waits, r.Hold == rotation.HoldActivation
		if r.Distributed.IsZero() {
			told.Distribution = v1alpha1.KubeletAuthorityInProgress
		}
	case r.Phase == rotation.Replace && told.Name == r.Old:
		told.Message, told.Removable = waits, r.Hold == rotation.HoldRemoval && r.Removable(now)
	case r.Phase == rotation.Withdraw && told.Name == r.Old:
		told.Message, told.Distribution = waits, v1alpha1.KubeletAuthorityDeleting
	}
}
