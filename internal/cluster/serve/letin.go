// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/policyconfig"
	"muster.dev/muster/internal/cluster/component"
	"muster.dev/muster/internal/cluster/nodegroup"
	"muster.dev/muster/internal/iam/arn"
	"muster.dev/muster/internal/iam/identityservice"
)

// access lets IAM's principals into a cluster: by access entries, or where the mode knows none, by IAMIdentityMapping objects.
type access struct {
	management client.Reader
	cluster    client.Client
	mode       v1alpha1.AuthenticationMode
}

const (
	clusterAdminPolicy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
	creatorEntry       = "cluster-creator"
	// firstAccess remembers who was let in at first, so that those whom somebody shuts out stay out.
	firstAccess = "muster-first-access"
)

// first lets the creator of the cluster in, and the role of machines whose group names none. Each of them once.
func (a access) first(ctx context.Context, creator bool) error {
	done := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: policyconfig.HostsNamespace, Name: firstAccess}}
	err := a.cluster.Get(ctx, client.ObjectKeyFromObject(done), done)
	if err == nil {
		return a.moved(ctx, done)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("asking who was let in at first: %w", err)
	}
	if creator {
		if err := a.creator(ctx); err != nil {
			return err
		}
	}
	role, err := a.role(ctx, v1alpha1.DefaultNodeRole)
	if err != nil {
		return err
	}
	if err := a.nodes(ctx, role); err != nil {
		return err
	}
	done.Data = map[string]string{"nodeRole": role.Spec.ARN, firstMode: string(a.mode)}
	if err := a.cluster.Create(ctx, done); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("writing down who was let in at first: %w", err)
	}
	return nil
}

func (a access) creator(ctx context.Context) error {
	var users v1alpha1.IAMUserList
	if err := a.management.List(ctx, &users); err != nil {
		return fmt.Errorf("looking for the creator of the cluster: %w", err)
	}
	for _, user := range users.Items {
		if user.Spec.Account != identityservice.DefaultAccount || user.Spec.Name != identityservice.FirstUserName {
			continue
		}
		if a.mode == v1alpha1.AuthenticationConfigMap {
			return a.mapping(ctx, creatorEntry, iamv1alpha1.IAMIdentityMappingSpec{ARN: user.Spec.ARN, Username: user.Spec.ARN, Groups: []string{component.GroupAdministrators}})
		}
		return a.enter(ctx, creatorEntry, accessv1alpha1.AccessEntrySpec{
			PrincipalARN: user.Spec.ARN, PrincipalID: user.Spec.UserID, Type: accessv1alpha1.TypeStandard,
			AccessPolicies: []accessv1alpha1.AccessPolicy{{PolicyARN: clusterAdminPolicy, Scope: accessv1alpha1.AccessScope{Type: accessv1alpha1.ScopeCluster}}},
		})
	}
	return errNoUser
}

// role finds a role that machines may have, by its name or ARN.
func (a access) role(ctx context.Context, name string) (*v1alpha1.IAMRole, error) {
	path := ""
	if strings.HasPrefix(name, "arn:") {
		parsed, err := arn.Parse(name)
		if err != nil {
			return nil, &nodegroup.RoleProblem{Reason: reasonNoRole, Message: err.Error()}
		}
		var ok bool
		if path, name, ok = parsed.Role(); !ok || parsed.Account != identityservice.DefaultAccount {
			return nil, &nodegroup.RoleProblem{Reason: reasonNoRole, Message: fmt.Sprintf("%s is no role of the account of machines, %s", parsed, identityservice.DefaultAccount)}
		}
	}
	var roles v1alpha1.IAMRoleList
	if err := a.management.List(ctx, &roles); err != nil {
		return nil, fmt.Errorf("looking for the role %s: %w", name, err)
	}
	for i := range roles.Items {
		spec := &roles.Items[i].Spec
		if spec.Account == identityservice.DefaultAccount && spec.Name == name && (path == "" || path == spec.Path) {
			return &roles.Items[i], nil
		}
	}
	if err := a.management.Get(ctx, client.ObjectKey{Name: identityservice.DefaultAccount}, &v1alpha1.IAMAccount{}); apierrors.IsNotFound(err) {
		return nil, nodegroup.ErrNotYet // in a moment it has made its first role
	}
	return nil, &nodegroup.RoleProblem{Reason: reasonNoRole, Message: fmt.Sprintf("there is no IAM role %s: make it (aws iam create-role), or name another in spec.nodeRole", name)}
}

// Reasons in the words of EKS.
const (
	reasonNoRole    = "IamNodeRoleNotFound"
	reasonNoProfile = "IamInstanceProfileNotFound"
)

// profile finds the instance profile that carries a role: the one of its name, or else the first.
func (a access) profile(ctx context.Context, role *v1alpha1.IAMRole) (string, error) {
	var profiles v1alpha1.IAMInstanceProfileList
	if err := a.management.List(ctx, &profiles); err != nil {
		return "", fmt.Errorf("looking for the instance profile of role %s: %w", role.Spec.Name, err)
	}
	found := ""
	for _, profile := range profiles.Items {
		name := profile.Spec.Name
		if profile.Spec.Account == role.Spec.Account && profile.Spec.RoleID == role.Spec.RoleID && (found == "" || name == role.Spec.Name || found != role.Spec.Name && name < found) {
			found = name
		}
	}
	if found == "" {
		return "", &nodegroup.RoleProblem{Reason: reasonNoProfile, Message: fmt.Sprintf("no instance profile carries the role %[1]s: make one (aws iam create-instance-profile --instance-profile-name %[1]s; "+
			"aws iam add-role-to-instance-profile --instance-profile-name %[1]s --role-name %[1]s)", role.Spec.Name)}
	}
	return found, nil
}

// nodes lets those in who have a role, as nodes.
func (a access) nodes(ctx context.Context, role *v1alpha1.IAMRole) error {
	err := a.nodesOnce(ctx, role)
	if errors.Is(err, errMeanwhile) { // it is found now
		err = a.nodesOnce(ctx, role)
	}
	return err
}

// errMeanwhile is that another part of the service made an object of that name a moment ago.
var errMeanwhile = errors.New("somebody else was letting the same ones in at the same time")

func (a access) nodesOnce(ctx context.Context, role *v1alpha1.IAMRole) error {
	name := entryName(role.Spec.Name)
	if a.mode == v1alpha1.AuthenticationConfigMap {
		return a.mapping(ctx, name, iamv1alpha1.IAMIdentityMappingSpec{
			ARN: role.Spec.ARN, Username: nodeUsername, Groups: []string{"system:bootstrappers", "system:nodes"},
		})
	}
	return a.enter(ctx, name, accessv1alpha1.AccessEntrySpec{PrincipalARN: role.Spec.ARN, PrincipalID: role.Spec.RoleID, Type: accessv1alpha1.TypeEC2Linux})
}

// entryName makes an object's name of a role's.
func entryName(role string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(role))
	if name = strings.Trim(name, ".-"); len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "node-role"
	}
	return name
}

// enter makes an access entry, unless there is one for the principal. One that somebody made or changed is left alone.
func (a access) enter(ctx context.Context, name string, spec accessv1alpha1.AccessEntrySpec) error {
	var entries accessv1alpha1.AccessEntryList
	if err := a.cluster.List(ctx, &entries); err != nil {
		return fmt.Errorf("listing access entries: %w", err)
	}
	names := map[string]bool{}
	for _, entry := range entries.Items {
		if entry.Spec.PrincipalARN == spec.PrincipalARN {
			return nil
		}
		names[entry.Name] = true
	}
	entry := &accessv1alpha1.AccessEntry{ObjectMeta: metav1.ObjectMeta{Name: notTaken(name, names)}, Spec: spec}
	if err := a.cluster.Create(ctx, entry); apierrors.IsAlreadyExists(err) && !names[entry.Name] {
		return errMeanwhile
	} else if err != nil {
		return fmt.Errorf("making access entry %s: %w", entry.Name, err)
	}
	return nil
}

// mapping does the same by an IAMIdentityMapping.
func (a access) mapping(ctx context.Context, name string, spec iamv1alpha1.IAMIdentityMappingSpec) error {
	var mappings iamv1alpha1.IAMIdentityMappingList
	if err := a.cluster.List(ctx, &mappings); err != nil {
		return fmt.Errorf("listing IAMIdentityMappings: %w", err)
	}
	names := map[string]bool{}
	for _, mapping := range mappings.Items {
		if mapping.Spec.ARN == spec.ARN {
			return nil
		}
		names[mapping.Name] = true
	}
	mapping := &iamv1alpha1.IAMIdentityMapping{ObjectMeta: metav1.ObjectMeta{Name: notTaken(name, names)}, Spec: spec}
	if err := a.cluster.Create(ctx, mapping); apierrors.IsAlreadyExists(err) && !names[mapping.Name] {
		return errMeanwhile
	} else if err != nil {
		return fmt.Errorf("making IAMIdentityMapping %s: %w", mapping.Name, err)
	}
	return nil
}

// notTaken is a name that nobody has.
func notTaken(name string, taken map[string]bool) string {
	for n, wanted := 2, name; ; n++ {
		if !taken[name] {
			return name
		}
		name = fmt.Sprintf("%s-%d", wanted, n)
	}
}

var errNoUser = errors.New("the first IAM user is not there yet")

// letIn lets the first ones in, as soon as the identity service has made them.
func (s *Service) letIn(ctx context.Context, a access, creator bool) {
	said := ""
	for {
		err := a.first(ctx, creator)
		if err == nil || ctx.Err() != nil {
			return
		}
		if text := err.Error(); text != said && !errors.Is(err, errNoUser) && !errors.Is(err, nodegroup.ErrNotYet) {
			said = text
			s.cfg.Log.Info("nobody is let in by IAM yet", "reason", text)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pollInterval):
		}
	}
}
