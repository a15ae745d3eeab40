// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// programs are those without which a kubelet mounts nothing (k8s.io/mount-utils).
func programs(_ context.Context, host Host) Result {
	var missing, unclear []string
	for _, name := range []string{"mount", "umount"} {
		switch path, err := host.Program(name); {
		case err != nil:
			unclear = append(unclear, fmt.Sprintf("%s (%v)", name, err))
		case path == "":
			missing = append(missing, name)
		}
	}
	switch {
	case len(missing) > 0:
		return Result{Status: Fail, Saw: "missing: " + strings.Join(missing, ", "), Fix: "install the package mount (util-linux)"}
	case len(unclear) > 0:
		return unknown(fmt.Errorf("whether there are %s", strings.Join(unclear, ", ")), "see that they can be found and run")
	}
	return ok("mount, umount")
}

func containerRuntime(ctx context.Context, host Host) Result {
	const fix = "install containerd, or put it beside muster"
	found, err := host.Runtime(ctx)
	switch {
	case err != nil:
		return unknown(err, fix)
	case found.Answers:
		return ok("it answers at %s", found.Socket)
	case found.Exists:
		return Result{
			Status: Fail, Saw: fmt.Sprintf("there is %s, but nobody answers", found.Socket),
			Fix: "see what is wrong with it (systemctl status containerd), or remove the socket if there is none any more",
		}
	case found.Program == "":
		return Result{Status: Fail, Saw: fmt.Sprintf("neither %s nor a program to start", found.Socket), Fix: fix}
	}
	return ok("none runs yet; %s will", found.Program)
}

// existing finds an earlier life as a node. Files that muster join has made, it takes over; anybody else's must go
// first, or the machine would be two nodes.
func existing(_ context.Context, host Host) Result {
	const fix = "if the machine shall leave its cluster, undo what made it a node first (muster leave, kubeadm reset), and stop the kubelet"
	found, err := host.Existing()
	if err != nil {
		return unknown(err, fix)
	}
	running, err := host.Processes("kubelet")
	switch {
	case err != nil:
		return unknown(err, fix)
	case found.ByMuster:
		return ok("an earlier muster join, which is taken up again")
	}
	saw := found.Files
	if len(running) > 0 {
		saw = append(slices.Clip(saw), fmt.Sprintf("a kubelet that runs (process %d)", running[0]))
	}
	if len(saw) > 0 {
		return Result{Status: Fail, Saw: strings.Join(saw, ", "), Fix: fix}
	}
	return ok("none")
}

// dropIns finds files of packages, kubeadm's above all, and of people that change kubelet.service: systemd lays them
// over whatever unit there is, muster's too, so the kubelet would be started with their arguments and not with those of
// the join.
func dropIns(_ context.Context, host Host) Result {
	const fix = "remove the package that it is of, or move it away and run systemctl daemon-reload; what it is to say can be said by --config-source (spec.kubelet)"
	found, err := host.DropIns()
	if err != nil {
		return unknown(err, fix)
	}
	var decide, others []string
	for _, d := range found {
		if d.Decides {
			decide = append(decide, d.Path)
		} else {
			others = append(others, d.Path)
		}
	}
	switch {
	case len(decide) > 0:
		return Result{Status: Fail, Saw: strings.Join(decide, ", ") + ": the kubelet would be started with what is said there", Fix: fix}
	case len(others) > 0:
		return Result{Status: Warn, Saw: strings.Join(others, ", ") + ", which the kubelet's unit is changed by", Fix: fix}
	}
	return ok("none")
}

// port checks that nobody has a port that one of the node's programs needs, other than that program of an earlier join.
func port(number int, owner string) func(context.Context, Host) Result {
	return func(_ context.Context, host Host) Result {
		fix := fmt.Sprintf("stop what listens on it: %s needs it", owner)
		who, err := host.Listener(number)
		switch {
		case err != nil:
			return unknown(err, fix)
		case who == "":
			return ok("free")
		}
		if found, err := host.Existing(); err == nil && found.ByMuster && strings.HasPrefix(who, owner+" ") {
			return ok("taken by the %s of an earlier muster join", owner)
		}
		return Result{Status: Fail, Saw: "taken by " + who, Fix: fix}
	}
}
