// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamauthenticatorv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/internal/iam/accesspolicy"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/platform/strictyaml"
)

// authEntries are entries from a cluster or from files, and what is wrong with their form.
type authEntries struct {
	accessEntries []identity.AccessEntry
	mappings      []identity.Mapping
	problems      []identity.Problem
	notes         []string
	// principalIDs means that the cluster's authenticator uses no access entry without its principal's id.
	principalIDs bool
}

const (
	awsAuthNamespace = "kube-system"
	awsAuthName      = "aws-auth"
)

// readCluster reads what there is in a cluster. A kind that it does not serve has no entries.
func (c *authCommand) readCluster(ctx context.Context, into *authEntries) error {
	p, err := c.cluster(c.Options)
	if err != nil {
		return err
	}
	absent := func(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

	var entries accessv1alpha1.AccessEntryList
	if err := p.ReadAll(ctx, &entries); absent(err) {
		into.notes = append(into.notes, "The cluster has no kind AccessEntry.")
	} else if err != nil {
		return err
	}
	for i := range entries.Items {
		if !into.leaving(&entries.Items[i], "AccessEntry") {
			into.accessEntry(&entries.Items[i])
		}
	}
	var mappings iamauthenticatorv1alpha1.IAMIdentityMappingList
	if err := p.ReadAll(ctx, &mappings); err != nil && !absent(err) {
		return err
	}
	for i := range mappings.Items {
		if !into.leaving(&mappings.Items[i], "IAMIdentityMapping") {
			into.mappings = append(into.mappings, identity.FromIAMIdentityMapping(&mappings.Items[i]))
		}
	}
	var awsAuth corev1.ConfigMap
	err = p.Within(ctx, func(ctx context.Context) error {
		return p.Get(ctx, client.ObjectKey{Namespace: awsAuthNamespace, Name: awsAuthName}, &awsAuth)
	})
	if absent(err) {
		into.notes = append(into.notes, "The cluster has no ConfigMap kube-system/aws-auth.")
	} else if err != nil {
		return err
	}
	if !into.leaving(&awsAuth, "ConfigMap") {
		into.awsAuth(&awsAuth)
	}
	return nil
}

// leaving reports whether an object is being deleted: authenticators take no notice of it any more, however long finalizers keep it.
func (e *authEntries) leaving(object client.Object, kind string) bool {
	if object.GetDeletionTimestamp() == nil {
		return false
	}
	e.notes = append(e.notes, fmt.Sprintf("%s %s is being deleted, and maps nobody.", kind, object.GetName()))
	return true
}

func (e *authEntries) accessEntry(object *accessv1alpha1.AccessEntry) {
	e.accessEntries = append(e.accessEntries, identity.FromAccessEntry(object))
	switch known := meta.FindStatusCondition(object.Status.Conditions, accessv1alpha1.ConditionPrincipalKnown); {
	case object.Spec.PrincipalID != "" || object.CreationTimestamp.IsZero(): // of a file, which is not made yet
	case known != nil && known.Status == metav1.ConditionFalse:
		e.principalIDs = true
		e.notes = append(e.notes, fmt.Sprintf("AccessEntry %s: %s.", object.Name, known.Message))
	default:
		e.notes = append(e.notes, fmt.Sprintf("AccessEntry %s has no spec.principalID: any principal with the ARN %s is let in, also one that was deleted and made again.", object.Name, object.Spec.PrincipalARN))
	}
	for _, problem := range accesspolicy.NewPlan(object, nil).Problems {
		e.problems = append(e.problems, identity.Problem{
			Source: identity.SourceAccessEntry, Entry: object.Name, Field: "spec.accessPolicies", Saw: "has one that is not applied: " + problem, Fix: "remove it, or choose another",
		})
	}
}

// suppose assumes, and notes, that a principal without a given id is the one that its access entry was made for.
func (e *authEntries) suppose(p *identity.Principal) {
	for _, entry := range e.accessEntries {
		if entry.PrincipalID != "" && entry.PrincipalARN == p.CanonicalARN.String() {
			p.UserID = entry.PrincipalID
			e.notes = append(e.notes, fmt.Sprintf("Supposed that it is %s, for which the access entry %s was made; --principal-id names another.", p.UserID, entry.Name))
			return
		}
	}
}

func (e *authEntries) awsAuth(object *corev1.ConfigMap) {
	mappings, problems := identity.ParseAWSAuth(object.Data)
	e.mappings, e.problems = append(e.mappings, mappings...), append(e.problems, problems...)
}

// maxAuthFile is how much is read of one file.
const maxAuthFile = 8 << 20

func (e *authEntries) readFiles(in io.Reader, manifests, files []string) error {
	for _, name := range manifests {
		data, err := readLimited(in, name)
		if err != nil {
			return err
		}
		documents, err := strictyaml.Documents(data)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		for i, document := range documents {
			if err := e.document(document); err != nil {
				return fmt.Errorf("%s, document %d: %w", name, i+1, err)
			}
		}
	}
	for _, name := range files {
		data, err := readLimited(in, name)
		if err != nil {
			return err
		}
		mappings, problems := identity.ParseFile(data)
		e.mappings, e.problems = append(e.mappings, mappings...), append(e.problems, problems...)
	}
	return nil
}

func readLimited(in io.Reader, name string) ([]byte, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("reading entries: %w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxAuthFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", name, err)
	case len(data) > maxAuthFile:
		return nil, fmt.Errorf("%s has more than %d MiB", name, maxAuthFile>>20)
	}
	return data, nil
}

// document reads one object, or a list of them.
func (e *authEntries) document(document []byte) error {
	data, problems := strictyaml.ToJSON(document)
	if len(problems) > 0 {
		return fmt.Errorf("is not YAML: %s", problems[0])
	}
	return e.object(data)
}

func (e *authEntries) object(data []byte) error {
	var head struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Items             []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("is not a Kubernetes object: %w", err)
	}
	switch head.GroupVersionKind().String() {
	case corev1.SchemeGroupVersion.WithKind("List").String():
		for i, item := range head.Items {
			if err := e.object(item); err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
		}
		return nil
	case corev1.SchemeGroupVersion.WithKind("ConfigMap").String():
		if head.Name != awsAuthName || head.Namespace != "" && head.Namespace != awsAuthNamespace {
			e.notes = append(e.notes, fmt.Sprintf("The ConfigMap %s/%s is left out: only kube-system/aws-auth is read.", head.Namespace, head.Name))
			return nil
		}
		var object corev1.ConfigMap
		e.decode(data, &object, identity.SourceAWSAuth, head.Name, func() { e.awsAuth(&object) })
	case accessv1alpha1.GroupVersion.WithKind("AccessEntry").String():
		var object accessv1alpha1.AccessEntry
		e.decode(data, &object, identity.SourceAccessEntry, head.Name, func() { e.accessEntry(&object) })
	case iamauthenticatorv1alpha1.GroupVersion.WithKind("IAMIdentityMapping").String():
		var object iamauthenticatorv1alpha1.IAMIdentityMapping
		e.decode(data, &object, identity.SourceIdentityMapping, head.Name, func() { e.mappings = append(e.mappings, identity.FromIAMIdentityMapping(&object)) })
	default:
		return fmt.Errorf("is a %q of %q; there are the ConfigMap aws-auth of v1, AccessEntry of %s and IAMIdentityMapping of %s (a mounted file is named by --file)",
			head.Kind, head.APIVersion, accessv1alpha1.GroupVersion, iamauthenticatorv1alpha1.GroupVersion)
	}
	return nil
}

// decode reads an object and calls use. Unknown fields become problems; an object that cannot be read becomes a problem and is left out.
func (e *authEntries) decode(data []byte, object client.Object, source identity.Source, name string, use func()) {
	problems, ok := strictyaml.FromJSON(data, object)
	for _, problem := range problems {
		e.problems = append(e.problems, identity.Problem{Source: source, Entry: name, Saw: "cannot be read as it is: " + problem, Fix: "correct it", Unused: !ok})
	}
	if ok {
		use()
	}
}
