// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The groups that kubeadm's rules speak of.
const (
	GroupKubeadmTokens = "system:bootstrappers:kubeadm:default-node-token"
	GroupBootstrappers = "system:bootstrappers"
	GroupNodes         = "system:nodes"
)

const kubelets = "system:certificates.k8s.io:certificatesigningrequests:"

// bindAsKubeadm makes the bindings that kubeadm makes for joining nodes
// (cmd/kubeadm/app/phases/bootstraptoken/node/tlsbootstrap.go). The roles are upstream's own.
func (p *Plane) bindAsKubeadm(ctx context.Context) error {
	for _, b := range [][3]string{
		{"kubeadm:kubelet-bootstrap", "system:node-bootstrapper", GroupKubeadmTokens},
		{"kubeadm:node-autoapprove-bootstrap", kubelets + "nodeclient", GroupKubeadmTokens},
		{"kubeadm:node-autoapprove-certificate-rotation", kubelets + "selfnodeclient", GroupNodes},
	} {
		if err := p.Bind(ctx, b[0], b[1], rbacv1.GroupKind, b[2]); err != nil {
			return err
		}
	}
	return nil
}

// Bind gives a ClusterRole to a user or a group.
func (p *Plane) Bind(ctx context.Context, name, role, kind, subject string) error {
	_, err := p.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: kind, Name: subject}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("binding %s to %s: %w", role, subject, err)
	}
	return nil
}

// Grant makes a ClusterRole of these rules and gives it to a user or a group.
func (p *Plane) Grant(ctx context.Context, name, kind, subject string, rules ...rbacv1.PolicyRule) error {
	_, err := p.admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making role %s: %w", name, err)
	}
	return p.Bind(ctx, name, name, kind, subject)
}

// Token makes a bootstrap token that is good for authentication only, in these groups beside system:bootstrappers, and
// returns it. The secret half is the same for all: nobody but this plane ever believes it.
func (p *Plane) Token(ctx context.Context, id, groups string) (string, error) {
	const secret = "0123456789abcdef"
	_, err := p.admin.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true", "auth-extra-groups": groups,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("making bootstrap token %s: %w", id, err)
	}
	return id + "." + secret, nil
}

// flowOfBootstrap lets bootstrap tokens queue among themselves, each in queues of its own, instead of being refused
// with everyone whom no rule names.
func (p *Plane) flowOfBootstrap(ctx context.Context) error {
	const name = "bootstrappers"
	shares := int32(20)
	flow := p.admin.FlowcontrolV1()
	if _, err := flow.PriorityLevelConfigurations().Create(ctx, &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: &shares,
				LimitResponse: flowcontrolv1.LimitResponse{
					Type:    flowcontrolv1.LimitResponseTypeQueue,
					Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 128, HandSize: 6, QueueLengthLimit: 200},
				},
			},
		},
	}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making a priority level for bootstrap tokens: %w", err)
	}
	if _, err := flow.FlowSchemas().Create(ctx, &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: name},
			MatchingPrecedence:         900,
			DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: GroupBootstrappers}}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"},
				}},
			}},
		},
	}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making a flow schema for bootstrap tokens: %w", err)
	}
	return nil
}
