// SPDX-License-Identifier: Apache-2.0

package stacktemplate_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/cloudformation/stacktemplate"
)

var update = flag.Bool("update", false, "write the golden files anew")

// arguments are the parameters of templates that have no defaults, by file.
var arguments = map[string]map[string]string{
	"quickstart-nodes.yaml": {"ClusterName": "basic-cluster", "Subnets": "subnet-1, subnet-2", "DisableIMDSv1": "true", "ClusterToken": "s3cr3t"},
}

// Templates of the shapes that eksctl and the EKS quick starts send are rehearsed and made, and what comes of them is
// compared with golden files.
func TestTemplates(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.[jy]*")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d templates, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := story(t, parse(t, string(body)), arguments[filepath.Base(file)])
			golden := strings.TrimSuffix(file, filepath.Ext(file)) + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs: look at what go test -update writes\n%s", golden, got)
			}
		})
	}
}

// story makes a stack of a template and tells what happens, a line each.
func story(t *testing.T, template *stacktemplate.Template, given map[string]string) string {
	t.Helper()
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(template.Check(nil))
	env := environment()
	var err error
	env.Parameters, err = template.Arguments(given)
	must(err)
	stored := template.Stored(env.Parameters)
	for name := range stored {
		stored[name] = "ami-stored"
	}
	env.Parameters, err = template.WithStored(env.Parameters, stored)
	must(err)
	rehearsed, err := template.Rehearse(env)
	must(err)
	order, err := template.Order()
	must(err)
	summary := template.Summary()
	line("%d resources, %d outputs, capabilities %v", len(template.Resources), len(template.Outputs), summary.Capabilities)
	line("parameters %s", jsonOf(t, env.Parameters))
	resources := made{}
	env.Resource = resources.resource
	for _, id := range order {
		resource := template.Resources[id]
		created, err := template.Created(env, id)
		must(err)
		if !created {
			line("%s %s is not made", id, resource.Type)
			continue
		}
		properties, err := template.Properties(env, id)
		must(err)
		creation, update, err := template.Policies(env, id)
		must(err)
		metadata, err := template.ResourceMetadata(env, id)
		must(err)
		line("%s %s needs %v", id, resource.Type, template.References(id))
		line("  properties %s", jsonOf(t, properties))
		if changes := stacktemplate.Diff(rehearsed[id], properties); len(changes) > 0 {
			var paths []string
			for _, change := range changes {
				paths = append(paths, change.Path)
			}
			line("  known once made: %v", paths)
		}
		if len(creation)+len(update)+len(metadata) > 0 {
			line("  creation policy %s, update policy %s, metadata %s", jsonOf(t, creation), jsonOf(t, update), jsonOf(t, metadata))
		}
		if resource.DeletionPolicy+resource.UpdateReplacePolicy != "" {
			line("  deletion policy %q, update replace policy %q", resource.DeletionPolicy, resource.UpdateReplacePolicy)
		}
		resources[id] = true
	}
	outputs, err := template.OutputValues(env)
	must(err)
	for _, output := range outputs {
		line("output %s", jsonOf(t, output))
	}
	return text.String()
}
