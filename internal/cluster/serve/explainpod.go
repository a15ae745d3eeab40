// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/plane/podidentity"
)

// podExplainer explains identities of pods while the identity service runs.
type podExplainer struct {
	PodIdentities

	identity *identityservice.Service
	store    identityservice.Store
	region   string
}

func (s *Service) setPodExplainer(e *podExplainer) {
	s.mu.Lock()
	s.podExplainer = e
	s.mu.Unlock()
}

func (e *podExplainer) explain(ctx context.Context, h *hosted, namespace, name string) (podidentity.Explanation, error) {
	h.mu.Lock()
	specs := h.specs
	h.mu.Unlock()
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
	if last, ok := e.identity.LastOfPod(string(pod.UID)); ok {
		facts.Given = &podidentity.Given{ARN: last.ARN, Expires: last.Expires}
	}
	if err := e.associated(ctx, &facts, c); err != nil {
		return podidentity.Explanation{}, err
	}
	if facts.Account != nil && facts.Account.Annotations[podidentity.AnnotationRole] != "" {
		facts.WebIdentityRefused = e.identity.CheckWebIdentity(ctx, facts.Account.Annotations[podidentity.AnnotationRole], c.Issuer,
			"system:serviceaccount:"+namespace+":"+pod.Spec.ServiceAccountName, facts.WebIdentityAudience())
	}
	return podidentity.Explain(facts), nil
}

// associated fills in the association, and whether its role is given to the pod.
func (e *podExplainer) associated(ctx context.Context, f *podidentity.Facts, c podidentity.Cluster) error {
	found, ok, err := e.Association(c, f.Pod.Namespace, f.Pod.Spec.ServiceAccountName)
	if err != nil || !ok {
		return err
	}
	f.Association = &found
	of := podidentity.Pod{Cluster: c.Name, Namespace: f.Pod.Namespace, Name: f.Pod.Name, UID: string(f.Pod.UID), ServiceAccount: f.Pod.Spec.ServiceAccountName}
	f.Refused = e.identity.CheckPod(ctx, e.Role(of, found, podidentity.ExternalID(e.region, identityservice.DefaultAccount, of)))
	return nil
}

// machine fills in the pod's machine, its role and the hop limit of its instance metadata.
func (e *podExplainer) machine(f *podidentity.Facts) error {
	m := e.machineOf(f.Cluster, f.Pod)
	if m == nil {
		return nil
	}
	f.Machine, f.HopLimit = m.Name, max(int(m.Spec.Metadata().HTTPPutResponseHopLimit), 1)
	state, err := e.store.State()
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

// machineOf is the machine of the node that a pod runs on; nil if there is none.
func (e *podExplainer) machineOf(cluster string, pod *corev1.Pod) *v1alpha1.Machine {
	if pod.Spec.NodeName == "" {
		return nil
	}
	for _, object := range e.machines.List() {
		if m, ok := object.(*v1alpha1.Machine); ok && m.Spec.ClusterName == cluster && m.Status.NodeName == pod.Spec.NodeName {
			return m
		}
	}
	return nil
}
