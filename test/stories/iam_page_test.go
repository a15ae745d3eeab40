// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// page runs what docs/iam-login.md shows, on a cluster that has just come up. Its shell has evaluated what `muster env`
// prints.
func (w *iam) page(*people) {
	w.eventually("the creator's entry is applied", func() error {
		out, err := w.kubectl("get", "accessentry", "cluster-creator", "-o", `jsonpath={range .status.conditions[*]}{.type}={.status} {end}`)
		if err == nil && !strings.Contains(out, "PoliciesApplied=True") {
			err = fmt.Errorf("its conditions are %q", out)
		}
		return err
	})
	w.t.Setenv("PATH", w.toldEndpoint()+":"+os.Getenv("PATH"))
	for _, v := range w.admin {
		name, value, _ := strings.Cut(v, "=")
		w.t.Setenv(name, value)
	}
	w.follow(page{
		name: "iam-login.md", least: 20, pairs: []string{"/home/you/.kube/config", w.kubeconfig},
		settles: regexp.MustCompile(`^kubectl get csr$`), // the second machine's kubelet asks a moment after it is Ready
		// Version 1 of the AWS CLI writes times in another form than version 2.
		unsteady: regexp.MustCompile(`(?m)^ *"(CreateDate|expirationTimestamp)": .*\n`),
	})
	w.mustKubectl("config", "use-context", "muster") // the page leaves the one that comes in by IAM
}

// toldEndpoint is a directory with an `aws` that is told where services are: Debian's is too old to read it from the
// environment.
func (w *iam) toldEndpoint() string {
	w.t.Helper()
	program, err := exec.LookPath("aws")
	if err != nil {
		w.t.Fatal(err)
	}
	dir := w.t.TempDir()
	script := "#!/bin/sh\nexec '" + program + "' \"$@\" --endpoint-url \"$AWS_ENDPOINT_URL\"\n"
	if err := os.WriteFile(filepath.Join(dir, "aws"), []byte(script), 0o700); err != nil {
		w.t.Fatal(err)
	}
	return dir
}
