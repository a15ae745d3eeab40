// SPDX-License-Identifier: Apache-2.0

package addoncontroller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/node/bootreport"
)

// health is what ails the Deployments of an add-on, and the APIs that it serves.
func (r *addons) health(ctx context.Context, objects []*unstructured.Unstructured) ([]v1alpha1.AddonIssue, error) {
	for _, object := range objects {
		var issues []v1alpha1.AddonIssue
		var err error
		switch object.GetKind() {
		case "Deployment":
			issues, err = r.deployment(ctx, object)
		case "APIService":
			issues, err = r.apiService(ctx, object)
		}
		if err != nil || len(issues) > 0 {
			return issues, err
		}
	}
	return nil, nil
}

// apiService is what ails an API that the add-on serves, as the API server says, which asks for it.
func (r *addons) apiService(ctx context.Context, object *unstructured.Unstructured) ([]v1alpha1.AddonIssue, error) {
	name := object.GetName()
	there, err := r.read(ctx, object)
	if apierrors.IsNotFound(err) {
		return []v1alpha1.AddonIssue{{Code: issueNotFound, Message: "APIService " + name + " is gone", ResourceIDs: []string{name}}}, nil
	}
	if err != nil {
		return nil, err
	}
	conditions, _, err := unstructured.NestedSlice(there.Object, "status", "conditions")
	if err != nil {
		return nil, fmt.Errorf("reading the conditions of APIService %s: %w", name, err)
	}
	for _, condition := range conditions {
		c, ok := condition.(map[string]any)
		if !ok || c["type"] != "Available" {
			continue
		}
		if c["status"] == "True" {
			return nil, nil
		}
		return unserved(name, "the API server does not reach APIService %s: %v: %v", name, c["reason"], c["message"]), nil
	}
	return unserved(name, "the API server has not asked for APIService %s yet", name), nil
}

// deployment is what ails a Deployment.
func (r *addons) deployment(ctx context.Context, object *unstructured.Unstructured) ([]v1alpha1.AddonIssue, error) {
	d := &appsv1.Deployment{}
	err := r.Cluster.Get(ctx, client.ObjectKeyFromObject(object), d)
	if apierrors.IsNotFound(err) {
		return []v1alpha1.AddonIssue{{Code: issueNotFound, Message: "Deployment " + object.GetName() + " is gone", ResourceIDs: []string{object.GetName()}}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %s: %w", object.GetName(), err)
	}
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	current := d.Status.ObservedGeneration >= d.Generation
	if current && d.Status.AvailableReplicas >= want && d.Status.UpdatedReplicas >= want && d.Status.Replicas == d.Status.UpdatedReplicas {
		return nil, nil
	}
	reason, err := r.obstacle(ctx, d)
	if err != nil {
		return nil, err
	}
	updated := d.Status.UpdatedReplicas
	if !current {
		updated = 0
	}
	return insufficient(d.Name, "%d of %d pods of Deployment %s are available, %d are of the newest kind%s", d.Status.AvailableReplicas, want, d.Name, updated, reason), nil
}

// obstacle is what keeps the first unhealthy pod of a Deployment from running, as the scheduler or the kubelet says.
func (r *addons) obstacle(ctx context.Context, d *appsv1.Deployment) (string, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return "", fmt.Errorf("reading the selector of Deployment %s: %w", d.Name, err)
	}
	var pods corev1.PodList
	if err := r.Cluster.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return "", fmt.Errorf("listing the pods of Deployment %s: %w", d.Name, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for i := range pods.Items {
		if said := obstacleOf(&pods.Items[i]); said != "" {
			return "; pod " + pods.Items[i].Name + ": " + said, nil
		}
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return "; " + c.Message, nil
		}
	}
	return "", nil
}

// obstacleOf is what keeps a pod from running; empty if nothing is known to.
func obstacleOf(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if waiting := c.State.Waiting; waiting != nil && waiting.Reason != "ContainerCreating" && waiting.Reason != "" {
			return strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": ")
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// onMachines is what ails an add-on that is a program of each machine.
func (r *addons) onMachines(ctx context.Context, known addon.Addon) ([]v1alpha1.AddonIssue, error) {
	switch known.Health {
	case addon.HealthOfProgram:
		return r.program(ctx, known.Name)
	case addon.HealthOfNetwork:
		return r.network(ctx)
	case addon.HealthOfPodIdentity:
		return r.podIdentity(ctx)
	}
	return nil, fmt.Errorf("nobody knows how add-on %s is on machines", known.Name)
}

// program asks the agents of the machines, which start the program of an add-on and report one that ends again and
// again.
func (r *addons) program(ctx context.Context, name string) ([]v1alpha1.AddonIssue, error) {
	if r.Report == nil {
		return nil, nil
	}
	var machines v1alpha1.MachineList
	if err := r.api.List(ctx, &machines); err != nil {
		return nil, fmt.Errorf("listing the machines of cluster %s: %w", r.ClusterName, err)
	}
	var failing, said []string
	for i := range machines.Items {
		m := &machines.Items[i]
		if m.Spec.ClusterName != r.ClusterName || !m.Spec.Provider.Can(v1alpha1.KeepLogs) || !m.DeletionTimestamp.IsZero() {
			continue
		}
		report, ok := r.Report(m)
		if ok && report.Reason == bootreport.ProgramFails && strings.HasPrefix(report.Message, name+" ") {
			failing, said = append(failing, m.Name), append(said, m.Name+": "+report.Message)
		}
	}
	return unhealthy(failing, said, name+" does not run on %d of the machines: %s"), nil
}

// podIdentity asks the agent of each machine that is a node by now.
func (r *addons) podIdentity(ctx context.Context) ([]v1alpha1.AddonIssue, error) {
	if r.PodIdentity == nil {
		return nil, nil
	}
	var machines v1alpha1.MachineList
	if err := r.api.List(ctx, &machines); err != nil {
		return nil, fmt.Errorf("listing the machines of cluster %s: %w", r.ClusterName, err)
	}
	var failing, said []string
	for i := range machines.Items {
		m := &machines.Items[i]
		if m.Spec.ClusterName != r.ClusterName || !m.Spec.Provider.Can(v1alpha1.JoinNetwork) || !m.DeletionTimestamp.IsZero() ||
			!meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReady) {
			continue
		}
		if err := r.PodIdentity(ctx, m); err != nil {
			failing, said = append(failing, m.Name), append(said, m.Name+": "+err.Error())
		}
	}
	return unhealthy(failing, said, "the EKS Pod Identity agent does not answer on %d of the machines: %s"), nil
}

// network asks the kubelets, which report a machine without a working network plugin.
func (r *addons) network(ctx context.Context) ([]v1alpha1.AddonIssue, error) {
	var nodes corev1.NodeList
	if err := r.Cluster.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("listing the nodes of cluster %s: %w", r.ClusterName, err)
	}
	var failing, said []string
	for i := range nodes.Items {
		for _, c := range nodes.Items[i].Status.Conditions {
			bad := c.Type == corev1.NodeNetworkUnavailable && c.Status == corev1.ConditionTrue ||
				c.Type == corev1.NodeReady && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, "NetworkPluginNotReady")
			if bad {
				failing, said = append(failing, nodes.Items[i].Name), append(said, nodes.Items[i].Name+": "+c.Message)
				break
			}
		}
	}
	return unhealthy(failing, said, "the network of pods is not ready on %d of the nodes: %s"), nil
}

// unhealthy is the issue of machines on which a program does not run.
func unhealthy(failing, said []string, format string) []v1alpha1.AddonIssue {
	if len(failing) == 0 {
		return nil
	}
	slices.Sort(failing)
	slices.Sort(said)
	issues := insufficient("", format, len(failing), strings.Join(said, "; "))
	issues[0].ResourceIDs = failing
	return issues
}
