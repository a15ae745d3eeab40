// SPDX-License-Identifier: Apache-2.0

package serviceaccounts

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/plane/podidentity"
)

// Explainer explains identities of pods.
type Explainer struct {
	Pods

	Identity *identityservice.Service
	Store    identityservice.Store
	Region   string // name
}

// Explain says which identity a pod of a cluster has, and why. Errors are those of [Pods.Cluster], of the cluster's API
// server, such as that the pod does not exist, and of the store.
func (e *Explainer) Explain(ctx context.Context, specs component.Config, namespace, name string) (podidentity.Explanation, error) {
	c, err := e.Cluster(specs.Cluster.Spec.Name)
	if err != nil {
		return podidentity.Explanation{}, err
	}
	api, err := kubernetes.NewForConfig(planeclient.Cluster(specs))
	if err != nil {
		return podidentity.Explanation{}, fmt.Errorf("making a client of the cluster: %w", err)
	}
	pod, err := api.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return podidentity.Explanation{}, err
	}
	facts := podidentity.Facts{Cluster: c.Name, Pod: pod}
	facts.Account, err = api.CoreV1().ServiceAccounts(namespace).Get(ctx, pod.Spec.ServiceAccountName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		facts.Account, err = nil, nil
	}
	if err != nil {
		return podidentity.Explanation{}, err
	}
	if err := e.machine(&facts); err != nil {
		return podidentity.Explanation{}, err
	}
	if last, ok := e.Identity.LastOfPod(string(pod.UID)); ok {
		facts.Given = &podidentity.Given{ARN: last.ARN, Expires: last.Expires}
	}
	if err := e.associated(ctx, &facts, c); err != nil {
		return podidentity.Explanation{}, err
	}
	if facts.Account != nil && facts.Account.Annotations[podidentity.AnnotationRole] != "" {
		facts.WebIdentityRefused = e.Identity.CheckWebIdentity(ctx, facts.Account.Annotations[podidentity.AnnotationRole], c.Issuer,
			"system:serviceaccount:"+namespace+":"+pod.Spec.ServiceAccountName, facts.WebIdentityAudience())
		facts.WebIdentityNotTrusted = errors.Is(facts.WebIdentityRefused, identityservice.ErrNotTrusted)
	}
	return podidentity.Explain(facts), nil
}

// associated fills in the association, and whether its role is given to the pod.
func (e *Explainer) associated(ctx context.Context, f *podidentity.Facts, c podidentity.Cluster) error {
	found, ok, err := e.Association(c, f.Pod.Namespace, f.Pod.Spec.ServiceAccountName)
	if err != nil || !ok {
		return err
	}
	f.Association = &found
	of := podidentity.Pod{Cluster: c.Name, Namespace: f.Pod.Namespace, Name: f.Pod.Name, UID: string(f.Pod.UID), ServiceAccount: f.Pod.Spec.ServiceAccountName}
	f.Refused = e.Identity.CheckPod(ctx, e.Role(of, found, podidentity.ExternalID(e.Region, identityservice.DefaultAccount, of)))
	f.NotTrusted = errors.Is(f.Refused, identityservice.ErrNotTrusted)
	return nil
}

// machine fills in the pod's machine, its role and the hop limit of its instance metadata.
func (e *Explainer) machine(f *podidentity.Facts) error {
	m, ok := e.Machines.OfNode(f.Cluster, f.Pod.Spec.NodeName)
	if !ok {
		return nil
	}
	f.Machine, f.HopLimit = m.Name, max(int(m.Spec.Metadata().HTTPPutResponseHopLimit), 1)
	state, err := e.Store.State()
	if err != nil {
		return err
	}
	if profile, ok := state.Profile(identityservice.DefaultAccount, m.Spec.InstanceProfile); ok {
		if role, ok := state.RoleByID(profile.RoleID); ok {
			f.NodeRole = role.ARN().String()
		}
	}
	return nil
}
