// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	structuralpruning "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"muster.dev/muster/api/v1alpha1/crds"
	"muster.dev/muster/internal/iam/iam"
)

// The management plane must take all entities that IAM's rules let through: a refusal there is an InternalFailure here.
func TestTheManagementPlaneTakesWhatIAMTakes(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	names := []string{"a", "A", "alice", "_", "-", "+=,.@-", "Carol_X+1", "a.b", "-a-", strings.Repeat("x", 64), strings.Repeat("_", 64), "a@example.com"}
	for _, name := range names {
		tags := []iam.Tag{{Key: "K", Value: ""}, {Key: strings.Repeat("k", 128), Value: strings.Repeat("v", 256)}}
		grants := iam.Grants{Attached: []string{managedPolicy("AdministratorAccess")}, Inline: map[string]string{name: strings.Repeat("x", 10240)}}
		for _, e := range []Entity{
			iam.User{ID: "AIDA" + strings.Repeat("A", 17), Account: DefaultAccount, Path: "/a/b!~/", Name: name, Created: at, Tags: tags, Boundary: managedPolicy("IAMFullAccess"), Grants: grants},
			iam.Role{ID: "AROA" + strings.Repeat("2", 17), Account: DefaultAccount, Path: "/", Name: name, Created: at, Trust: nodeTrust, MaxSession: 12 * time.Hour, Tags: tags, Boundary: managedPolicy("IAMFullAccess"), Grants: grants},
			iam.InstanceProfile{ID: "AIPA" + strings.Repeat("7", 17), Account: DefaultAccount, Path: "/" + strings.Repeat("p", 510) + "/", Name: strings.Repeat(name, 2)[:min(128, 2*len(name))], Created: at, Tags: tags},
			iam.InstanceProfile{ID: "AIPA" + strings.Repeat("7", 17), Account: DefaultAccount, Path: "/", Name: name, RoleID: "AROA" + strings.Repeat("2", 17), RoleName: name, Created: at},
			iam.Policy{ID: "ANPA" + strings.Repeat("A", 17), Account: DefaultAccount, Path: "/", Name: name, Default: "v2", Created: at, Updated: at, Versions: []iam.PolicyVersion{{ID: "v1", Document: "{}", Created: at}, {ID: "v2", Document: "{}", Created: at}}},
			iam.OIDCProvider{Account: DefaultAccount, URL: "oidc.example.com", Created: at, Tags: tags},
			iam.OIDCProvider{Account: DefaultAccount, URL: "oidc.example.com/" + strings.Repeat("A", 238), Created: at, ClientIDs: []string{strings.Repeat("c", 255), "é"}, Thumbprints: []string{strings.Repeat("a0", 20)}},
			iam.Account{ID: DefaultAccount, Alias: "lab-1"},
		} {
			o, err := object(e)
			if err != nil {
				t.Fatal(err)
			}
			if problems := utilvalidation.IsDNS1123Subdomain(o.GetName()); len(problems) > 0 {
				t.Errorf("%T %q is kept as %q: %v", e, name, o.GetName(), problems)
			}
			raw, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			var plain map[string]any
			if err := utiljson.Unmarshal(raw, &plain); err != nil {
				t.Fatal(err)
			}
			kind := strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1alpha1.")
			if gone := pruned(t, kind, plain); len(gone) > 0 {
				t.Errorf("%T %q: the API server would drop %q", e, name, gone)
			}
			if back, err := entity(o); err != nil || fmt.Sprint(back) != fmt.Sprint(e) && kind != "IAMAccount" {
				t.Errorf("%+v came back as %+v, %v", e, back, err)
			}
			for _, problem := range refusals(t, kind, plain) {
				t.Errorf("%T %q: %s", e, name, problem)
			}
		}
	}
}

// Two names that are two for IAM are two objects, and capitals do not make another one.
func TestObjectNames(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a", "a.b", "a-b", "a_b", "a+b", "a=b", "a,b", "a@b", "ab", "-a", "a-", "_a", strings.Repeat("a", 63), strings.Repeat("a", 64), "a.x0123"} {
		object := objectName(DefaultAccount, name)
		if other, ok := seen[object]; ok {
			t.Errorf("%q and %q are both kept as %s", name, other, object)
		}
		seen[object] = name
		if upper := objectName(DefaultAccount, strings.ToUpper(name)); upper != object {
			t.Errorf("%q: %s and %s", name, object, upper)
		}
	}
}

// pruned are the fields that the API server would drop, as no schema has them.
func pruned(t *testing.T, kind string, o map[string]any) []string {
	t.Helper()
	return structuralpruning.PruneWithOptions(runtime.DeepCopyJSON(o), structuralOf(t, kind), true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// refusals is what the API server's checks of a custom resource say.
func refusals(t *testing.T, kind string, o map[string]any) []string {
	t.Helper()
	fields, _, err := schemavalidation.NewSchemaValidator(propsOf(t, kind))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, err := range schemavalidation.ValidateCustomResource(nil, o, fields) {
		out = append(out, err.Error())
	}
	structural := structuralOf(t, kind)
	errs, _ := schemacel.NewValidator(structural, true, celconfig.PerCallLimit).Validate(t.Context(), nil, structural, o, nil, celconfig.RuntimeCELCostBudget)
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

func structuralOf(t *testing.T, kind string) *structuralschema.Structural {
	t.Helper()
	structural, err := structuralschema.NewStructural(propsOf(t, kind))
	if err != nil {
		t.Fatal(err)
	}
	return structural
}

// propsOf is the schema of a kind.
func propsOf(t *testing.T, kind string) *apiextensions.JSONSchemaProps {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range all {
		if definition.Spec.Names.Kind != kind {
			continue
		}
		internal := &apiextensions.CustomResourceDefinition{}
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(definition, internal, nil); err != nil {
			t.Fatal(err)
		}
		props, err := apiextensions.GetSchemaForVersion(internal, "v1alpha1")
		if err != nil {
			t.Fatal(err)
		}
		return props.OpenAPIV3Schema
	}
	t.Fatalf("there is no kind %s", kind)
	return nil
}
