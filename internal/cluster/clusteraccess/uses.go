// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// uses returns which node group or machine has a role, or "". It looks at the clusters that counts accepts, by
// namespace, which is "" for machines of no cluster. A machine with an unknown instance profile counts: it may have the
// role again in a moment.
func uses(ctx context.Context, management client.Reader, role *v1alpha1.IAMRoleSpec, counts func(namespace string) bool) (string, error) {
	var groups v1alpha1.NodeGroupList
	var machines v1alpha1.MachineList
	var profiles v1alpha1.IAMInstanceProfileList
	var pods v1alpha1.FargateProfileList
	if err := errors.Join(management.List(ctx, &groups), management.List(ctx, &pods), management.List(ctx, &machines), management.List(ctx, &profiles)); err != nil {
		return "", fmt.Errorf("looking for machines with the role %s: %w", role.Name, err)
	}
	for i := range groups.Items {
		g := &groups.Items[i]
		if name := g.Role(); counts(g.Namespace) && (name == role.Name || name == role.ARN) {
			return fmt.Sprintf("node group %s of cluster %s has the role", g.Spec.Name, g.Namespace), nil
		}
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; counts(p.Namespace) && p.Spec.PodExecutionRoleARN == role.ARN {
			return fmt.Sprintf("Fargate profile %s of cluster %s has the role", p.Spec.Name, p.Namespace), nil
		}
	}
	carried := map[string]string{}
	for i := range profiles.Items {
		if p := &profiles.Items[i].Spec; p.Account == role.Account {
			carried[p.Name] = p.RoleID
		}
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		if m.Spec.InstanceProfile == "" || !counts(namespaceOf(m)) {
			continue
		}
		if id, known := carried[m.Spec.InstanceProfile]; !known || id == role.RoleID {
			return fmt.Sprintf("machine %s has the instance profile %s", m.Name, m.Spec.InstanceProfile), nil
		}
	}
	return "", nil
}

// namespaceOf returns the namespace of a machine's cluster, "" if the machine has none.
func namespaceOf(m *v1alpha1.Machine) string {
	if m.Spec.ClusterName == "" {
		return ""
	}
	return v1alpha1.ClusterSlug(m.Spec.ClusterName)
}
