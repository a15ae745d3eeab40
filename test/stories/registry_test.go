// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newCrane builds crane from the module that the images of this repository are packed with. Its own command needs
// modules that nothing here does.
func newCrane(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join("../../images", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "crane")
	build := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-modfile="+filepath.Join(dir, "go.mod"), "-o", program, "github.com/google/go-containerregistry/cmd/crane")
	build.Dir, build.Env = "../../images", append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building crane: %v\n%s", err, out)
	}
	return program
}

// An image is pushed by crane with a password of `aws ecr get-login-password`, and pulled by machines with the role of
// their instances; without the right it is neither pushed nor pulled.
func registryOfTheAccount(t *testing.T, i *installation) {
	crane, archive := newCrane(t), savedImage(t, "greet:dev", "pushed", hostPlatform)
	environment := append(os.Environ(), "DOCKER_CONFIG="+t.TempDir())
	out, _ := i.muster("env")
	registry := ""
	for line := range strings.Lines(out) {
		if assignment, ok := strings.CutPrefix(strings.TrimSpace(line), "export "); ok {
			environment = append(environment, assignment)
			if value, ok := strings.CutPrefix(assignment, "MUSTER_REGISTRY="); ok {
				registry = value
			}
		}
	}
	try := func(stdin, name string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Env, cmd.Stdin = environment, strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	run := func(stdin, name string, args ...string) string {
		t.Helper()
		out, err := try(stdin, name, args...)
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return out
	}
	if out, err := try("", crane, "push", archive, registry+"/team/greet:v1"); err == nil || !strings.Contains(out, "401 Unauthorized") {
		t.Errorf("a stranger pushes: %v\n%s", err, out)
	}
	w := newIAM(t, i)
	aws := func(args ...string) string {
		t.Helper()
		out, err := w.aws(w.admin, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	password := aws("ecr", "get-login-password")
	run(password, crane, "auth", "login", registry, "--username", "AWS", "--password-stdin")
	run("", crane, "push", archive, registry+"/team/greet:v1")
	if got := run("", crane, "ls", registry+"/team/greet"); got != "v1" {
		t.Errorf("tags %s", got)
	}
	const name = "000000000000.dkr.ecr.us-east-1.amazonaws.com/team/greet"
	if got := aws("ecr", "describe-repositories", "--query", "repositories[].repositoryUri", "--output", "text"); got != name {
		t.Errorf("repositories %s", got)
	}
	node := i.mustKubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}") // whose kubelet keeps the password
	pod := func(pod string) {
		t.Helper()
		i.apply(fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  nodeName: %s\n  terminationGracePeriodSeconds: 1\n  containers: [{name: greet, image: '%s:v1', imagePullPolicy: Always}]\n", pod, node, name))
	}
	says := func(pod string) {
		t.Helper()
		i.eventually(pod+" runs", func() error {
			if got, err := i.kubectl("logs", pod); err != nil || !strings.Contains(got, "build pushed") {
				return fmt.Errorf("%s %w", got, err)
			}
			return nil
		})
	}
	pod("pushed")
	says("pushed")

	// The registry starts again by itself, with what it had.
	i.kill("registry")
	i.eventually("the registry answers again", func() error { _, err := try("", crane, "ls", registry+"/team/greet"); return err })

	// Without the policy the role pulls nothing, at once: its password is asked about each time.
	const policy = "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly"
	aws("iam", "detach-role-policy", "--role-name", "muster-node-muster", "--policy-arn", policy)
	pod("refused")
	i.eventually("a pod may not pull", func() error {
		message, err := i.kubectl("get", "pod", "refused", "-o", "jsonpath={.status.containerStatuses[0].state.waiting.message}")
		if err != nil || !strings.Contains(message, "403") {
			return fmt.Errorf("%q %w", message, err)
		}
		return nil
	})
	aws("iam", "attach-role-policy", "--role-name", "muster-node-muster", "--policy-arn", policy)
	says("refused")

	// An image that ECR's API removes cannot be pulled.
	aws("ecr", "batch-delete-image", "--repository-name", "team/greet", "--image-ids", "imageTag=v1")
	if out, err := try("", crane, "manifest", registry+"/team/greet:v1"); err == nil || !strings.Contains(out, "MANIFEST_UNKNOWN") {
		t.Errorf("an image that was removed: %v\n%s", err, out)
	}
}
