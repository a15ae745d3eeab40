// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// Verb is what is done with units.
type Verb string

// The verbs that joining and leaving need. All of them may be repeated.
const (
	Reload      Verb = "daemon-reload" // of no unit: unit files are read again
	Enable      Verb = "enable"
	Disable     Verb = "disable"
	Start       Verb = "start" // waits until the unit says that it is ready, if it is of a type that does
	Restart     Verb = "restart"
	Stop        Verb = "stop"
	ResetFailed Verb = "reset-failed"
)

// Unit is what systemd knows of a unit.
type Unit struct {
	Name string
	// LoadState is "loaded", or "not-found" if there is no such unit.
	LoadState string
	// ActiveState is "active", "inactive", "failed", "activating" or "deactivating".
	ActiveState string
	SubState    string
	// UnitFileState is "enabled", "disabled", "static", "masked", or empty.
	UnitFileState string
	// FragmentPath is the unit's file.
	FragmentPath string
	// Result is why it is not active, such as "exit-code".
	Result string
	// Restarts is how often systemd has started it again.
	Restarts int
	// Outdated means that its files have changed since systemd read them: a daemon-reload is due.
	Outdated bool
}

// Exists reports whether there is such a unit.
func (u Unit) Exists() bool { return u.LoadState != "" && u.LoadState != "not-found" }

// Active reports whether it runs.
func (u Unit) Active() bool { return u.ActiveState == "active" }

// Trouble says in a word or two what is wrong with a unit that keeps failing, and nothing about one that does not.
func (u Unit) Trouble() string {
	switch {
	case u.ActiveState == "failed":
		return "failed (" + u.Result + ")"
	case u.SubState == "auto-restart":
		return fmt.Sprintf("ends again and again (%s), started again %d times", u.Result, u.Restarts)
	}
	return ""
}

// Config says where systemctl is.
type Config struct {
	// Systemctl is the program; empty: from PATH.
	Systemctl string
}

// Systemctl is the systemd of this host.
type Systemctl struct{ program string }

// New finds systemctl.
func New(c Config) (*Systemctl, error) {
	if c.Systemctl == "" {
		c.Systemctl = "systemctl"
	}
	program, err := exec.LookPath(c.Systemctl)
	if err != nil {
		return nil, fmt.Errorf("finding systemctl: %w: this works on hosts that systemd runs", err)
	}
	return &Systemctl{program: program}, nil
}

// Booted reports whether systemd runs below a root: sd_booted(3) asks for the same directory.
func Booted(root string) bool {
	info, err := os.Lstat(root + "/run/systemd/system")
	return !errors.Is(err, fs.ErrNotExist) && err == nil && info.IsDir()
}

// unitPattern matches names of units, as far as they are used here. No such name can be taken for an option.
var unitPattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.@-]{0,200}\.(service|slice|target|socket)$`)

// CheckNames refuses what is not the name of a unit.
func CheckNames(units []string) error {
	for _, unit := range units {
		if !unitPattern.MatchString(unit) {
			return fmt.Errorf("%q is not the name of a unit", unit)
		}
	}
	return nil
}

// Do does something with units.
func (s *Systemctl) Do(ctx context.Context, verb Verb, units ...string) error {
	if err := CheckNames(units); err != nil {
		return err
	}
	args := []string{string(verb), "--quiet"}
	if verb == Enable || verb == Disable { // reading all unit files again takes a while, and is done once, by Reload
		args = append(args, "--no-reload")
	}
	_, err := s.run(ctx, append(append(args, "--"), units...)...)
	if err != nil && len(units) > 0 && (verb == Start || verb == Restart) {
		return fmt.Errorf("%w (see journalctl -u %s)", err, units[0])
	}
	return err
}

// Show returns the state of one unit. A unit that does not exist is not an error.
func (s *Systemctl) Show(ctx context.Context, unit string) (Unit, error) {
	units, err := s.ShowAll(ctx, unit)
	if err != nil {
		return Unit{}, err
	}
	return units[0], nil
}

// ShowAll returns the states of several units at once, in their order. systemd loads units for that.
func (s *Systemctl) ShowAll(ctx context.Context, names ...string) ([]Unit, error) {
	if err := CheckNames(names); err != nil || len(names) == 0 {
		return nil, err
	}
	out, err := s.run(ctx, append([]string{"show", "--property=LoadState,ActiveState,SubState,UnitFileState,FragmentPath,Result,NRestarts,NeedDaemonReload", "--"}, names...)...)
	if err != nil {
		return nil, err
	}
	texts := strings.Split(strings.TrimSpace(string(out)), "\n\n") // an empty line between two units
	if len(texts) != len(names) {
		return nil, fmt.Errorf("systemctl show returned %d units, want %d: %s", len(texts), len(names), strings.Join(names, ", "))
	}
	units := make([]Unit, len(names))
	for i, name := range names {
		units[i] = parseUnit(name, texts[i])
	}
	return units, nil
}

// parseUnit reads what systemctl show prints: a line for each property.
func parseUnit(name, text string) Unit {
	u := Unit{Name: name}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		switch key {
		case "LoadState":
			u.LoadState = value
		case "ActiveState":
			u.ActiveState = value
		case "SubState":
			u.SubState = value
		case "UnitFileState":
			u.UnitFileState = value
		case "FragmentPath":
			u.FragmentPath = value
		case "Result":
			u.Result = value
		case "NRestarts":
			u.Restarts, _ = strconv.Atoi(value) // 0 if it is not a number, which it always is
		case "NeedDaemonReload":
			u.Outdated = value == "yes"
		}
	}
	return u
}

func (s *Systemctl) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.program, append([]string{"--no-pager", "--no-ask-password"}, args...)...)
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	if err := cmd.Run(); err != nil {
		what := strings.Join(append([]string{"systemctl"}, args...), " ")
		if said := oneLine(talk.String()); said != "" {
			return nil, fmt.Errorf("%s: %s", what, said)
		}
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return out.Bytes(), nil
}

// oneLine is what a program said, without its line breaks and not more than a screen can take.
func oneLine(text string) string {
	const most = 400
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
