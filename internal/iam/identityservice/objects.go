// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/iam"
)

// The keys of an access key's Secret.
const (
	dataKeyID  = "accessKeyId"
	dataSecret = "secretAccessKey"
	dataUserID = "userId"
)

// plainLength is the longest name that is an object's name as it is; a longer or stranger one is told by a hash.
const plainLength = 63

// objectName is the name of the object of an entity: the account and the name, which must be a DNS name for Kubernetes.
// It is the same for two names that differ in capitals, so that the API server keeps names unique.
func objectName(account, name string) string {
	lower := strings.ToLower(name)
	plain := len(lower) <= plainLength && lower[0] != '-' && lower[len(lower)-1] != '-' &&
		!strings.ContainsFunc(lower, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	if plain {
		return account + "." + lower
	}
	readable := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, lower[:min(len(lower), plainLength)]), "-")
	sum := sha256.Sum256([]byte(lower))
	return strings.Trim(account+"."+readable, ".") + ".x" + hex.EncodeToString(sum[:10])
}

// objectKey is where the object of an entity is.
func objectKey(e Entity) client.ObjectKey {
	switch e := e.(type) {
	case iam.Account:
		return client.ObjectKey{Name: e.ID}
	case iam.User:
		return client.ObjectKey{Name: objectName(e.Account, e.Name)}
	case iam.AccessKey:
		return client.ObjectKey{Namespace: v1alpha1.NamespaceIAM, Name: strings.ToLower(e.ID)}
	case iam.Role:
		return client.ObjectKey{Name: objectName(e.Account, e.Name)}
	case iam.InstanceProfile:
		return client.ObjectKey{Name: objectName(e.Account, e.Name)}
	case iam.Policy:
		return client.ObjectKey{Name: objectName(e.Account, e.Name)}
	case iam.OIDCProvider:
		return client.ObjectKey{Name: objectName(e.Account, e.URL)}
	}
	return client.ObjectKey{}
}

// object makes the object of an entity, without what the API server adds.
func object(e Entity) (client.Object, error) {
	key := objectKey(e)
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	switch e := e.(type) {
	case iam.Account:
		return &v1alpha1.IAMAccount{ObjectMeta: meta, Spec: v1alpha1.IAMAccountSpec{ARN: e.RootARN().String(), Alias: e.Alias}}, nil
	case iam.User:
		return &v1alpha1.IAMUser{ObjectMeta: meta, Spec: v1alpha1.IAMUserSpec{
			IAMName: nameIn(e.Account, e.Path, e.Name, e.ARN().String(), e.Created),
			UserID:  e.ID, Tags: tagsIn(e.Tags), PermissionsBoundary: e.Boundary, IAMGrants: grantsIn(e.Grants),
		}}, nil
	case iam.Role:
		return &v1alpha1.IAMRole{ObjectMeta: meta, Spec: v1alpha1.IAMRoleSpec{
			IAMName: nameIn(e.Account, e.Path, e.Name, e.ARN().String(), e.Created),
			RoleID:  e.ID, Description: e.Description, TrustPolicy: e.Trust, MaxSessionSeconds: int32(e.MaxSession / time.Second), //nolint:gosec // G115: twelve hours at most
			Tags: tagsIn(e.Tags), PermissionsBoundary: e.Boundary, IAMGrants: grantsIn(e.Grants),
		}}, nil
	case iam.InstanceProfile:
		return &v1alpha1.IAMInstanceProfile{ObjectMeta: meta, Spec: v1alpha1.IAMInstanceProfileSpec{
			IAMName:   nameIn(e.Account, e.Path, e.Name, e.ARN().String(), e.Created),
			ProfileID: e.ID, RoleID: e.RoleID, RoleName: e.RoleName, Tags: tagsIn(e.Tags),
		}}, nil
	case iam.Policy:
		p := &v1alpha1.IAMPolicy{ObjectMeta: meta, Spec: v1alpha1.IAMPolicySpec{
			IAMName:  nameIn(e.Account, e.Path, e.Name, e.ARN().String(), e.Created),
			PolicyID: e.ID, Description: e.Description, DefaultVersion: e.Default, Updated: metav1.NewTime(e.Updated), Tags: tagsIn(e.Tags),
		}}
		for _, v := range e.Versions {
			p.Spec.Versions = append(p.Spec.Versions, v1alpha1.IAMPolicyVersion{ID: v.ID, Document: v.Document, Created: metav1.NewTime(v.Created)})
		}
		return p, nil
	case iam.OIDCProvider:
		return &v1alpha1.IAMOpenIDConnectProvider{ObjectMeta: meta, Spec: v1alpha1.IAMOpenIDConnectProviderSpec{
			Account: e.Account, URL: e.URL, ARN: e.ARN().String(), Created: metav1.NewTime(e.Created),
			ClientIDs: slices.Clone(e.ClientIDs), Thumbprints: slices.Clone(e.Thumbprints), Tags: tagsIn(e.Tags),
		}}, nil
	case iam.AccessKey:
		fixed := true
		meta.Labels = keyLabels(e)
		return &corev1.Secret{
			ObjectMeta: meta, Type: v1alpha1.SecretTypeAccessKey, Immutable: &fixed,
			Data: map[string][]byte{dataKeyID: []byte(e.ID), dataSecret: []byte(e.Secret.Reveal()), dataUserID: []byte(e.UserID)},
		}, nil
	}
	return nil, fmt.Errorf("%T is not an entity", e)
}

func keyLabels(e iam.AccessKey) map[string]string {
	return map[string]string{
		v1alpha1.LabelIAMUser: e.UserID, v1alpha1.LabelIAMAccount: e.Account, v1alpha1.LabelIAMStatus: string(e.Status),
	}
}

// fill puts an entity into the object that it was read from, and leaves what others wrote beside it.
func fill(into client.Object, e Entity) error {
	wanted, err := object(e)
	if err != nil {
		return err
	}
	switch into := into.(type) {
	case *v1alpha1.IAMAccount:
		into.Spec = wanted.(*v1alpha1.IAMAccount).Spec
	case *v1alpha1.IAMUser:
		from := into.Spec.RenamedFrom
		into.Spec = wanted.(*v1alpha1.IAMUser).Spec
		into.Spec.RenamedFrom = from
	case *v1alpha1.IAMRole:
		into.Spec = wanted.(*v1alpha1.IAMRole).Spec
	case *v1alpha1.IAMInstanceProfile:
		into.Spec = wanted.(*v1alpha1.IAMInstanceProfile).Spec
	case *v1alpha1.IAMPolicy:
		into.Spec = wanted.(*v1alpha1.IAMPolicy).Spec
	case *v1alpha1.IAMOpenIDConnectProvider:
		into.Spec = wanted.(*v1alpha1.IAMOpenIDConnectProvider).Spec
	case *corev1.Secret:
		labels := maps.Clone(into.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, wanted.GetLabels())
		into.Labels = labels
	}
	return nil
}

// entity reads an object. An object that contradicts itself is an error: its author did not mean what the service would
// make of it.
func entity(o client.Object) (Entity, error) {
	var e Entity
	var arn string
	switch o := o.(type) {
	case *v1alpha1.IAMAccount:
		e, arn = iam.Account{ID: o.Name, Alias: o.Spec.Alias, Created: o.CreationTimestamp.UTC()}, o.Spec.ARN
	case *v1alpha1.IAMUser:
		e, arn = iam.User{
			ID: o.Spec.UserID, Account: o.Spec.Account, Path: o.Spec.Path, Name: o.Spec.Name, Created: o.Spec.Created.UTC(),
			Tags: tagsOut(o.Spec.Tags), Boundary: o.Spec.PermissionsBoundary, Grants: grantsOut(o.Spec.IAMGrants),
		}, o.Spec.ARN
	case *v1alpha1.IAMRole:
		e, arn = iam.Role{
			ID: o.Spec.RoleID, Account: o.Spec.Account, Path: o.Spec.Path, Name: o.Spec.Name, Description: o.Spec.Description, Trust: o.Spec.TrustPolicy,
			MaxSession: time.Duration(o.Spec.MaxSessionSeconds) * time.Second, Created: o.Spec.Created.UTC(),
			Tags: tagsOut(o.Spec.Tags), Boundary: o.Spec.PermissionsBoundary, Grants: grantsOut(o.Spec.IAMGrants),
		}, o.Spec.ARN
	case *v1alpha1.IAMInstanceProfile:
		e, arn = iam.InstanceProfile{
			ID: o.Spec.ProfileID, Account: o.Spec.Account, Path: o.Spec.Path, Name: o.Spec.Name, RoleID: o.Spec.RoleID, RoleName: o.Spec.RoleName,
			Created: o.Spec.Created.UTC(), Tags: tagsOut(o.Spec.Tags),
		}, o.Spec.ARN
	case *v1alpha1.IAMPolicy:
		p := iam.Policy{
			ID: o.Spec.PolicyID, Account: o.Spec.Account, Path: o.Spec.Path, Name: o.Spec.Name, Description: o.Spec.Description,
			Default: o.Spec.DefaultVersion, Created: o.Spec.Created.UTC(), Updated: o.Spec.Updated.UTC(), Tags: tagsOut(o.Spec.Tags),
		}
		for _, v := range o.Spec.Versions {
			p.Versions = append(p.Versions, iam.PolicyVersion{ID: v.ID, Document: v.Document, Created: v.Created.UTC()})
		}
		e, arn = p, o.Spec.ARN
	case *v1alpha1.IAMOpenIDConnectProvider:
		e, arn = iam.OIDCProvider{
			Account: o.Spec.Account, URL: o.Spec.URL, ClientIDs: slices.Clone(o.Spec.ClientIDs), Thumbprints: slices.Clone(o.Spec.Thumbprints),
			Created: o.Spec.Created.UTC(), Tags: tagsOut(o.Spec.Tags),
		}, o.Spec.ARN
	case *corev1.Secret:
		return accessKey(o)
	default:
		return nil, fmt.Errorf("%T is not an entity", o)
	}
	if want := arnOf(e); arn != want {
		return nil, fmt.Errorf("its arn is %q, and should be %s", arn, want)
	}
	if key := objectKey(e); key.Name != o.GetName() {
		return nil, fmt.Errorf("an entity of its name is kept as %q", key.Name)
	}
	return e, nil
}

func accessKey(o *corev1.Secret) (Entity, error) {
	if o.Type != v1alpha1.SecretTypeAccessKey {
		return nil, fmt.Errorf("its type is %q, not %q", o.Type, v1alpha1.SecretTypeAccessKey)
	}
	key := iam.AccessKey{
		ID: string(o.Data[dataKeyID]), Account: o.Labels[v1alpha1.LabelIAMAccount], UserID: string(o.Data[dataUserID]),
		Secret: iam.SecretOf(string(o.Data[dataSecret])), Status: iam.Inactive, Created: o.CreationTimestamp.UTC(),
	}
	if o.Labels[v1alpha1.LabelIAMStatus] == string(iam.Active) {
		key.Status = iam.Active
	}
	switch {
	case strings.ToLower(key.ID) != o.Name || !iam.IsID(iam.KeyPrefix, key.ID):
		return nil, fmt.Errorf("its %s is not the name in capitals", dataKeyID)
	case key.UserID != o.Labels[v1alpha1.LabelIAMUser]:
		return nil, fmt.Errorf("its %s and the label %s differ", dataUserID, v1alpha1.LabelIAMUser)
	case key.Secret.Empty():
		return nil, fmt.Errorf("it has no %s", dataSecret)
	}
	return key, nil
}

func nameIn(account, path, name, arn string, created time.Time) v1alpha1.IAMName {
	return v1alpha1.IAMName{Account: account, Path: path, Name: name, ARN: arn, Created: metav1.NewTime(created)}
}

func tagsIn(tags []iam.Tag) v1alpha1.IAMTags {
	var out v1alpha1.IAMTags
	for _, t := range tags {
		out = append(out, v1alpha1.IAMTag{Key: t.Key, Value: t.Value})
	}
	return out
}

func tagsOut(tags v1alpha1.IAMTags) []iam.Tag {
	var out []iam.Tag
	for _, t := range tags {
		out = append(out, iam.Tag{Key: t.Key, Value: t.Value})
	}
	return out
}

func grantsIn(g iam.Grants) v1alpha1.IAMGrants {
	out := v1alpha1.IAMGrants{AttachedPolicies: slices.Clone(g.Attached)}
	for _, name := range slices.Sorted(maps.Keys(g.Inline)) {
		out.InlinePolicies = append(out.InlinePolicies, v1alpha1.IAMInlinePolicy{Name: name, Document: g.Inline[name]})
	}
	return out
}

func grantsOut(g v1alpha1.IAMGrants) iam.Grants {
	out := iam.Grants{Attached: slices.Clone(g.AttachedPolicies)}
	for _, p := range g.InlinePolicies {
		if out.Inline == nil {
			out.Inline = map[string]string{}
		}
		out.Inline[p.Name] = p.Document
	}
	return out
}
