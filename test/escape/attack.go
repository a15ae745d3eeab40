// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/test/escape/verdict"
)

// attack is one way to get out of a machine.
type attack struct {
	// name is stable: reports and tables of expected results use it.
	name string
	// tries says in one line what it does, and prize what it would be worth.
	tries, prize string
	// run is called in a process of its own, on a thread that it may change, in a mount namespace of its own if the
	// rights allow one.
	run func(w *world) finding
}

// attacks are all, by subject.
func attacks() []attack {
	return slices.Concat(
		handleAttacks(), namespaceAttacks(), linkAttacks(), processAttacks(), sharedAttacks(), overlayAttacks(), volumeAttacks(), mountAttacks(), fuseAttacks(),
		settingAttacks(), cgroupAttacks(), deviceAttacks(), loopAttacks(), kernelAttacks(), bpfAttacks(), keyAttacks(), socketAttacks(), limitAttacks(), coreAttacks(),
	)
}

// finding is what an attack came to.
type finding struct {
	outcome    verdict.Outcome
	why, token string
}

// out says that the attack got out, and by what one sees it.
func out(format string, args ...any) finding {
	return finding{outcome: verdict.Out, why: fmt.Sprintf(format, args...)}
}

// outWith says that the attack got out, with the secret that it read.
func outWith(token, format string, args ...any) finding {
	f := out(format, args...)
	f.token = token
	return f
}

// held says what held the attack though no system call refused it.
func held(format string, args ...any) finding {
	return finding{outcome: verdict.Held, why: fmt.Sprintf(format, args...)}
}

// notHere says what is missing here.
func notHere(format string, args ...any) finding {
	return finding{outcome: verdict.NotHere, why: fmt.Sprintf(format, args...)}
}

// refused says at which step a system call refused the attack. A call or a driver that this kernel does not have is not
// here.
func refused(step string, err error) finding {
	if missing(err) {
		return notHere("%s: %v", step, err)
	}
	return held("%s: %v", step, err)
}

// missing reports whether an error says that the kernel lacks something, rather than that somebody may not have it.
func missing(err error) bool {
	return slices.ContainsFunc([]error{unix.ENOSYS, unix.ENODEV, unix.ENXIO, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.EOPNOTSUPP}, func(errno error) bool {
		return errors.Is(err, errno)
	})
}

// ways gathers how each of several ways to the same prize ended.
type ways struct {
	refusals []string
	held     bool // at least one was held, and not merely missing
}

// add notes that a way was refused.
func (w *ways) add(step string, err error) {
	f := refused(step, err)
	w.held = w.held || f.outcome == verdict.Held
	if !slices.Contains(w.refusals, f.why) {
		w.refusals = append(w.refusals, f.why)
	}
}

// finding is the verdict if no way led out.
func (w *ways) finding() finding {
	switch {
	case len(w.refusals) == 0:
		return notHere("nothing to try it on")
	case w.held:
		return held("%s", w.summary())
	default:
		return notHere("%s", w.summary())
	}
}

// summary is short even if there were many ways.
func (w *ways) summary() string {
	const most = 4
	if n := len(w.refusals); n > most {
		return fmt.Sprintf("%s; and %d more refusals", strings.Join(w.refusals[:most], "; "), n-most)
	}
	return strings.Join(w.refusals, "; ")
}
