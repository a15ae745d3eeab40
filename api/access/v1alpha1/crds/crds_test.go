// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	access "muster.dev/muster/api/access/v1alpha1/crds"
	iamauthenticator "muster.dev/muster/api/iamauthenticator/v1alpha1/crds"
)

// server does to an object what the API server's custom resource storage does, with the packages it does so with.
type server struct {
	schema *structuralschema.Structural
	fields schemavalidation.SchemaValidator
	rules  *schemacel.Validator
}

func definitions(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	ours, err := access.All()
	if err != nil {
		t.Fatal(err)
	}
	upstream, err := iamauthenticator.All()
	if err != nil {
		t.Fatal(err)
	}
	return append(ours, upstream...)
}

func internalDefinition(t *testing.T, definition *apiextensionsv1.CustomResourceDefinition) *apiextensions.CustomResourceDefinition {
	t.Helper()
	definition = definition.DeepCopy()
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(definition)
	definition.Status.StoredVersions = []string{"v1alpha1"}
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(definition, internal, nil); err != nil {
		t.Fatal(err)
	}
	return internal
}

func servers(t *testing.T) map[string]server {
	t.Helper()
	out := map[string]server{}
	for _, definition := range definitions(t) {
		props, err := apiextensions.GetSchemaForVersion(internalDefinition(t, definition), "v1alpha1")
		if err != nil {
			t.Fatal(err)
		}
		structural, err := structuralschema.NewStructural(props.OpenAPIV3Schema)
		if err != nil {
			t.Fatal(err)
		}
		fields, _, err := schemavalidation.NewSchemaValidator(props.OpenAPIV3Schema)
		if err != nil {
			t.Fatal(err)
		}
		out[definition.Spec.Names.Kind] = server{structural, fields, schemacel.NewValidator(structural, true, celconfig.PerCallLimit)}
	}
	return out
}

// create returns the paths of the fields that are wrong.
func (s server) create(t *testing.T, object, old map[string]any) []string {
	t.Helper()
	defaulting.Default(object, s.schema)
	errs := schemavalidation.ValidateCustomResource(nil, object, s.fields)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.schema, object)...)
	if len(errs) == 0 { // rules run on what the schema let pass only
		var before any
		if old != nil {
			before = old
		}
		errs, _ = s.rules.Validate(t.Context(), nil, s.schema, object, before, celconfig.RuntimeCELCostBudget)
	}
	return paths(errs)
}

func paths(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, strings.TrimPrefix(err.Field, "spec."))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func parse(t *testing.T, document string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func entry(t *testing.T, spec string) map[string]any {
	t.Helper()
	return parse(t, fmt.Sprintf("{apiVersion: access.muster.dev/v1alpha1, kind: AccessEntry, metadata: {name: a}, spec: %s}", spec))
}

// TestDefinitions asks the API server's own check, which also estimates the cost of every rule.
func TestDefinitions(t *testing.T) {
	var names []string
	for _, definition := range definitions(t) {
		names = append(names, definition.Name)
		for _, problem := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), internalDefinition(t, definition)) {
			t.Errorf("%s: %v", definition.Name, problem)
		}
	}
	if diff := cmp.Diff([]string{"accessentries.access.muster.dev", "iamidentitymappings.iamauthenticator.k8s.aws"}, names); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
}

func TestAccessEntries(t *testing.T) {
	const role = "arn:aws:iam::111122223333:role/dev"
	api := servers(t)["AccessEntry"]
	for _, tc := range []struct {
		name, spec string
		want       []string
	}{
		{"a role", `{principalARN: "` + role + `"}`, nil},
		{"a role with a path", `{principalARN: "arn:aws:iam::111122223333:role/a/b/dev"}`, nil},
		{"a user of another partition", `{principalARN: "arn:aws-us-gov:iam::111122223333:user/x"}`, nil},
		{"everything", `{principalARN: "` + role + `", principalID: AROAEXAMPLEEXAMPLE123, username: "team:{{SessionName}}", kubernetesGroups: [a, b],
			accessPolicies: [{policyARN: "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy", scope: {type: namespace, namespaces: [dev-*, prod]}}]}`, nil},
		{"a node role", `{principalARN: "` + role + `", type: EC2_LINUX}`, nil},
		{"nobody", `{}`, []string{"principalARN"}},
		{"an instance profile", `{principalARN: "arn:aws:iam::111122223333:instance-profile/dev"}`, []string{"principalARN"}},
		{"a session", `{principalARN: "arn:aws:sts::111122223333:assumed-role/dev/s"}`, []string{"principalARN"}},
		{"a service-linked role", `{principalARN: "arn:aws:iam::111122223333:role/aws-service-role/eks.amazonaws.com/X"}`, []string{"principalARN"}},
		{"a wildcard", `{principalARN: "arn:aws:iam::111122223333:role/*"}`, []string{"principalARN"}},
		{"another type", `{principalARN: "` + role + `", type: EC2}`, []string{"type"}},
		{"a user as a node", `{principalARN: "arn:aws:iam::111122223333:user/x", type: EC2_LINUX}`, []string{"principalARN"}},
		{"a node with a user name", `{principalARN: "` + role + `", type: EC2_LINUX, username: x}`, []string{"username"}},
		{"a node with groups", `{principalARN: "` + role + `", type: HYBRID_LINUX, kubernetesGroups: [x]}`, []string{"kubernetesGroups"}},
		{"a node with policies", `{principalARN: "` + role + `", type: FARGATE_LINUX,
			accessPolicies: [{policyARN: "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy", scope: {type: cluster}}]}`, []string{"accessPolicies"}},
		{"a reserved user name", `{principalARN: "` + role + `", username: "system:node:a"}`, []string{"username"}},
		{"another reserved user name", `{principalARN: "` + role + `", username: "iam:a"}`, []string{"username"}},
		{"a session before a colon", `{principalARN: "` + role + `", username: "{{SessionName}}:a"}`, []string{"username"}},
		{"a session before and after one", `{principalARN: "` + role + `", username: "{{SessionNameRaw}}:{{SessionName}}"}`, []string{"username"}},
		{"a reserved group", `{principalARN: "` + role + `", kubernetesGroups: ["a", "system:masters"]}`, []string{"kubernetesGroups[1]"}},
		{"a group of policies", `{principalARN: "` + role + `", kubernetesGroups: ["muster:access-entry:b"]}`, []string{"kubernetesGroups[0]"}},
		{
			"a policy of IAM", `{principalARN: "` + role + `", accessPolicies: [{policyARN: "arn:aws:iam::aws:policy/AdministratorAccess", scope: {type: cluster}}]}`,
			[]string{"accessPolicies[0].policyARN"},
		},
		{
			"no namespaces", `{principalARN: "` + role + `", accessPolicies: [{policyARN: "arn:aws:eks::aws:cluster-access-policy/A", scope: {type: namespace}}]}`,
			[]string{"accessPolicies[0].scope.namespaces"},
		},
		{
			"namespaces of the cluster", `{principalARN: "` + role + `", accessPolicies: [{policyARN: "arn:aws:eks::aws:cluster-access-policy/A", scope: {type: cluster, namespaces: [a]}}]}`,
			[]string{"accessPolicies[0].scope.namespaces"},
		},
		{
			"a namespace in capitals", `{principalARN: "` + role + `", accessPolicies: [{policyARN: "arn:aws:eks::aws:cluster-access-policy/A", scope: {type: namespace, namespaces: [A]}}]}`,
			[]string{"accessPolicies[0].scope.namespaces[0]"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, api.create(t, entry(t, tc.spec), nil)); diff != "" {
				t.Errorf("wrong fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatOfAnAccessEntryMayChange(t *testing.T) {
	const role = `principalARN: "arn:aws:iam::111122223333:role/dev"`
	api := servers(t)["AccessEntry"]
	for _, tc := range []struct {
		name, before, after string
		want                []string
	}{
		{"groups", `{` + role + `}`, `{` + role + `, kubernetesGroups: [a]}`, nil},
		{"the id is recorded", `{` + role + `}`, `{` + role + `, principalID: AROAEXAMPLEEXAMPLE123}`, nil},
		{"the id changes", `{` + role + `, principalID: AROAEXAMPLEEXAMPLE123}`, `{` + role + `, principalID: AROAEXAMPLEEXAMPLE124}`, []string{"principalID"}},
		{"the id goes", `{` + role + `, principalID: AROAEXAMPLEEXAMPLE123}`, `{` + role + `}`, []string{"principalID"}},
		{"the principal", `{` + role + `}`, `{principalARN: "arn:aws:iam::111122223333:role/other"}`, []string{"principalARN"}},
		{"the type", `{` + role + `}`, `{` + role + `, type: EC2_LINUX}`, []string{"type"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			old := entry(t, tc.before)
			if wrong := api.create(t, old, nil); wrong != nil {
				t.Fatal("before:", wrong)
			}
			if diff := cmp.Diff(tc.want, api.create(t, entry(t, tc.after), old)); diff != "" {
				t.Errorf("wrong fields (-want +got):\n%s", diff)
			}
		})
	}
}

// Objects of aws-iam-authenticator's users must be kept whole: the fields have its names, and no field is pruned.
func TestIAMIdentityMappingsKeepTheirFields(t *testing.T) {
	api := servers(t)["IAMIdentityMapping"]
	object := parse(t, `{apiVersion: iamauthenticator.k8s.aws/v1alpha1, kind: IAMIdentityMapping, metadata: {name: a},
		spec: {arn: "arn:aws:iam::111122223333:role/Dev", username: "{{SessionName}}", groups: [a, a]}, status: {canonicalARN: a, userID: b}}`)
	before := maps.Clone(runtime.DeepCopyJSON(object))
	if wrong := api.create(t, object, nil); wrong != nil {
		t.Error("wrong:", wrong)
	}
	pruning.Prune(object, api.schema, true)
	if diff := cmp.Diff(before, object); diff != "" {
		t.Errorf("pruned or filled in (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"username"}, api.create(t, parse(t, `{metadata: {name: a}, spec: {arn: "arn:aws:iam::111122223333:role/Dev"}}`), nil)); diff != "" {
		t.Errorf("without a user name (-want +got):\n%s", diff)
	}
}
