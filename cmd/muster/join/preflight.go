// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/node/discovery"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/preflight"
	"muster.dev/muster/internal/platform/termsafe"
)

// everyCheck is how --ignore-preflight names all of them.
const everyCheck = "all"

// checkIgnored refuses names of checks that there are not, so that nobody believes to have switched one off. As with
// kubeadm, capitals do not matter.
func (j *joinCommand) checkIgnored() error {
	names := append([]string{everyCheck}, preflight.Names()...)
	for _, name := range j.ignorePreflight {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			return terminal.UsageError{Err: fmt.Errorf("unknown check %q in --ignore-preflight; there are: %s", name, strings.Join(names, ", "))}
		}
	}
	return nil
}

func (j *joinCommand) ignores(check string) bool {
	return slices.ContainsFunc(j.ignorePreflight, func(n string) bool { return strings.EqualFold(n, check) || strings.EqualFold(n, everyCheck) })
}

// filePatience is how long a discovery file may take to come for the checks. Discovery itself waits for it as long as
// it takes.
const filePatience = 5 * time.Second

// server returns the URL of the API server to check. It is empty if a discovery file has it that cannot be read now:
// discovery reports that.
func (j *joinCommand) server(ctx context.Context) string {
	if j.file == "" {
		return serverURL(j.endpoint)
	}
	server, err := discovery.Server(ctx, discovery.Config{File: j.file, Timeout: filePatience})
	if err != nil {
		return ""
	}
	return server
}

// preflight looks at the host, prints what is doubtful with what to do about it, and refuses what cannot work.
func (j *joinCommand) preflight(ctx context.Context, spec nodeconfig.Spec) (string, error) {
	programs, err := programsDir()
	if err != nil {
		return "", err
	}
	server := j.server(ctx)
	results := preflight.Run(ctx, preflight.System(preflight.Config{Endpoint: server, NodeName: j.nodeName, SwapAllowed: spec.Kubelet.SwapAllowed(), BinDir: programs}))
	if server == "" {
		results = slices.DeleteFunc(results, func(r preflight.Result) bool { return r.Name == "endpoint" || r.Name == "clock" })
	}
	var failed []string
	warnings := 0
	for _, r := range results {
		// A server that does not answer yet is waited for by what comes next.
		ignored := r.Name == "endpoint" || j.ignores(r.Name)
		switch {
		case r.Status == preflight.OK:
			continue
		case r.Status == preflight.Fail && !ignored:
			failed = append(failed, r.Name)
		default:
			warnings++
		}
		fmt.Fprint(j.Err, termsafe.Lines(fmt.Sprintf("  %-4s  %s: %s. Fix: %s\n", strings.ToUpper(r.Status), r.Name, r.Saw, r.Fix)))
	}
	if len(failed) > 0 {
		return "", fmt.Errorf("this host cannot become a node yet: %s (each fix is above; --ignore-preflight NAME goes on without one)", strings.Join(failed, ", "))
	}
	return fmt.Sprintf("%d checks, %s", len(results), terminal.Count(warnings, "warning", "warnings")), nil
}

// serverURL is that of an API server, which may be named so or as HOST:PORT.
func serverURL(endpoint string) string {
	if strings.Contains(endpoint, "://") {
		return endpoint
	}
	return "https://" + endpoint
}
