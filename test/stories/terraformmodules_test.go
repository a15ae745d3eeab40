// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The modules whose examples are run, each a directory below MUSTER_TERRAFORM_MODULES with a checkout:
// terraform-aws-modules/terraform-aws-eks (20.37), -vpc (5) and -kms (2.1). The providers that they need are those of a
// mirror that MUSTER_TERRAFORM_PLUGINS names, or of the registry.
var (
	moduleSource  = regexp.MustCompile(`source( +)= "terraform-aws-modules/(eks|vpc|kms)/aws"(?:\n *version +=[^\n]*)?`)
	moduleRegion  = regexp.MustCompile(`(?m)^( *region +)= "[a-z0-9-]+"`)
	moduleVersion = regexp.MustCompile(`(?m)^ *cluster_version +=[^\n]*\n`)
	moduleGate    = regexp.MustCompile(`(?m)^ *featureGates:\n *DisableKubeletCloudCredentialProviders: true\n`)
)

// TestTerraformModules makes, plans again, changes and destroys what the modules' own examples describe, with four
// changes: the region is the account's, the version of Kubernetes is the one that there is, the feature gate that this
// version has no more is left out, as is the example of Bottlerocket, of which there are no machines here.
//
//story:about cloud
func TestTerraformModules(t *testing.T) {
	modules := os.Getenv("MUSTER_TERRAFORM_MODULES")
	if modules == "" {
		t.Fatal("MUSTER_TERRAFORM_MODULES names no directory with checkouts of the modules: make terraform-modules MODULES=DIR")
	}
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready()
	w := newIAM(t, i)
	before := w.whatThereIs()
	for _, example := range []string{"vpc/examples/simple", "eks/examples/eks-managed-node-group"} {
		if !t.Run(example, func(t *testing.T) {
			tf := newExample(t, w.step(t), modules, example)
			tf.made()
			tf.nothingToDo()
			tf.retagged()
			tf.destroyed()
		}) {
			return
		}
		w.eventually("there is what there was before", func() error { return is(w.whatThereIs(), before) })
	}
}

// newExample is an example in a copy of the modules.
func newExample(t *testing.T, as *iam, modules, example string) *terraform {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(modules)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(example), "*.tf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no example: %v", example, err)
	}
	all, err := filepath.Glob(filepath.Join(root, "*", "*.tf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, all...) {
		if strings.Contains(file, "bottlerocket") {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		up, err := filepath.Rel(filepath.Dir(file), root)
		if err != nil {
			t.Fatal(err)
		}
		text = moduleSource.ReplaceAll(text, []byte(`source$1= "`+up+`/$2"`))
		if strings.HasPrefix(file, filepath.Join(root, filepath.FromSlash(example))) {
			text = moduleGate.ReplaceAll(moduleVersion.ReplaceAll(moduleRegion.ReplaceAll(text, []byte(`$1= "us-east-1"`)), nil), nil)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tf := &terraform{as: as, dir: filepath.Join(root, filepath.FromSlash(example))}
	mirror := providers()
	if plugins := os.Getenv("MUSTER_TERRAFORM_PLUGINS"); plugins != "" {
		mirror = []string{"-plugin-dir=" + plugins}
	}
	init := exec.CommandContext(t.Context(), "terraform", append([]string{"init", "-no-color", "-input=false"}, mirror...)...)
	init.Dir, init.Env = tf.dir, append(os.Environ(), "CHECKPOINT_DISABLE=1")
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%v", out, err)
	}
	return tf
}

// retagged changes a tag of everything that has the example's.
func (tf *terraform) retagged() {
	file := filepath.Join(tf.dir, "main.tf")
	text, err := os.ReadFile(file)
	if err != nil {
		tf.as.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "GithubOrg ", "Changed    = \"yes\"\n    GithubOrg ", 1)), 0o600); err != nil {
		tf.as.t.Fatal(err)
	}
	tf.apply()
}
