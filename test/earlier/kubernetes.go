// SPDX-License-Identifier: Apache-2.0

package earlier

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// versionOf finds the version of Kubernetes in a go.mod.
var versionOf = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v1\.(\d+)\.\d+)$`)

// Kubernetes builds the program of Kubernetes from today's sources and the modules of a commit, by its whole hash, at
// which there was one minor, in kubernetes/go.mod. It returns the program and its version, such as v1.36.3. The program
// is kept below .build, for the next time; Go says whether it is up to date.
func Kubernetes(ctx context.Context, root, commit string) (program, version string, err error) {
	dir, err := filepath.Abs(filepath.Join(root, ".build", "earlier", "kubernetes-"+commit[:12]))
	if err != nil {
		return "", "", err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", "", err
	}
	var minor string
	for _, file := range []string{"go.mod", "go.sum"} {
		show := exec.CommandContext(ctx, "git", "show", commit+":kubernetes/"+file)
		show.Dir = root
		had, err := show.Output()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), had, 0o600)
		}
		if err != nil {
			return "", "", fmt.Errorf("%s of %s: %w", file, commit, err)
		}
		if found := versionOf.FindStringSubmatch(string(had)); found != nil && file == "go.mod" {
			version, minor = found[1], found[2]
		}
	}
	if version == "" {
		return "", "", errors.New("no version of Kubernetes in the go.mod of " + commit)
	}
	program = filepath.Join(dir, "kubernetes")
	const set = " -X k8s.io/component-base/version."
	build := exec.CommandContext(ctx, "go", "build", "-modfile="+filepath.Join(dir, "go.mod"), "-o", program,
		"-ldflags=-s -w"+set+"gitVersion="+version+set+"gitMajor=1"+set+"gitMinor="+minor+set+"gitTreeState=clean", ".")
	build.Dir, build.Env = filepath.Join(root, "kubernetes"), append(os.Environ(), asBuilt...)
	if out, err := build.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("%s: %w\n%s", strings.Join(build.Args, " "), err, out)
	}
	return program, version, nil
}
