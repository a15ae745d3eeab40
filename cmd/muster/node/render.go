// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/cmd/muster/thishost"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/node/configsource"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/platform/termsafe"
)

// renderFlags say for which machine files are rendered.
type renderFlags struct {
	to                 string
	id, instanceType   string
	region, zone       string
	nodeIP, hostname   string
	cpus               int
	memory             string
	cgroupVersion      int
	layout             string
	existingContainerd bool
}

// Layouts that files are rendered for.
const (
	layoutHost    = "host"
	layoutMachine = "machine"
)

func (c *nodeConfigCommand) render() *cobra.Command {
	var f renderFlags
	cmd := &cobra.Command{
		Use:   "render [-c SOURCE]",
		Short: "Print every file that a machine would write, or write them to a directory",
		Long: `Print every file that a machine would write, or write them below a directory, without touching the system. Printed files have tokens
and passwords removed; files in a directory have them, with the modes that they would have on the machine.

Flags describe the machine. The default is this machine: its hardware and, if its user data is among the sources, what the instance
metadata service says about it.`,
		Example: `  muster node config render -c user-data.txt --node-ip 172.31.0.5 --hostname worker-1 --instance-type m4.xlarge

  # As on a machine of the local provider, to compare with another version's
  muster node config render -c user-data.txt --node-ip 172.31.0.5 --layout machine --to rendered`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.runRender(cmd, f) },
	}
	f.addCommon(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "directory to write to, which must not exist or be empty")
	flags.StringVar(&f.id, "instance-id", "", "id of the instance, such as i-0123456789abcdef0")
	flags.StringVar(&f.region, "region", "", "region of the instance, which the tokens of a machine that joins by its role are for")
	flags.StringVar(&f.zone, "availability-zone", "", "availability zone of the instance")
	flags.StringVar(&f.nodeIP, "node-ip", "", "address of the machine")
	flags.StringVar(&f.hostname, "hostname", "", "name of the machine: its private DNS name, or that of the host")
	flags.IntVar(&f.cpus, "cpus", 0, "number of processors")
	flags.StringVar(&f.memory, "memory", "", "memory, such as 8Gi")
	flags.IntVar(&f.cgroupVersion, "cgroup-version", 0, "1 or 2")
	_ = cmd.MarkFlagDirname("to")
	return cmd
}

// addCommon adds the flags that tell how files are rendered.
func (f *renderFlags) addCommon(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.instanceType, "instance-type", "", "type of the instance, such as m4.xlarge: the number of pods depends on it")
	flags.StringVar(&f.layout, "layout", layoutHost, "kind of system: "+layoutHost+" (with systemd) or "+layoutMachine+" (of the local provider)")
	flags.BoolVar(&f.existingContainerd, "existing-containerd", false, "the host has a containerd of its own")
	_ = cmd.RegisterFlagCompletionFunc("layout", cobra.FixedCompletions([]string{layoutHost, layoutMachine}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// anyMachine is a machine that has what any has.
func (f *renderFlags) anyMachine() render.Instance {
	instance := render.Instance{
		ID: "i-0123456789abcdef0", Type: f.instanceType, Region: "us-east-1", AvailabilityZone: "us-east-1a",
		PrivateIP: netip.AddrFrom4([4]byte{192, 0, 2, 1}), IPv6: netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1}), PrivateDNSName: "worker",
	}
	if instance.Type == "" {
		instance.Type = "m4.xlarge" // an expression may ask for its network interfaces
	}
	return instance
}

// problems are all that a machine would refuse, of a machine that has what any has.
func (f *renderFlags) problems(spec nodeconfig.Spec, layout render.Layout) nodeconfig.Problems {
	instance := f.anyMachine()
	_, err := render.Files(spec, instance, render.Facts{CPUs: 2, MemoryBytes: 8 << 30, CgroupVersion: 2}, layout)
	problems, ok := errors.AsType[nodeconfig.Problems](err)
	if err != nil && !ok {
		return nodeconfig.Problems{err.Error()}
	}
	var told []string
	for _, problem := range spec.Validate() {
		told = append(told, problem.Error())
	}
	return slices.DeleteFunc(slices.Clone(problems), func(line string) bool {
		found := slices.ContainsFunc([]string{"apiServerEndpoint", "certificateAuthority", "cidr"}, func(name string) bool {
			return strings.HasPrefix(line, "spec.cluster."+name+": Required value")
		})
		return found && !slices.Contains(told, line) // the machine finds it when it joins
	})
}

func (c *nodeConfigCommand) runRender(cmd *cobra.Command, f renderFlags) error {
	layout, err := f.chosenLayout()
	if err != nil {
		return err
	}
	merged, _, err := c.read(cmd)
	if err != nil {
		return err
	}
	instance, facts, err := c.describe(cmd.Context(), f)
	if err != nil {
		return err
	}
	spec, err := asItJoins(cmd.ErrOrStderr(), merged.Spec, instance)
	if err != nil {
		return err
	}
	files, err := render.Files(spec, instance, facts, layout)
	if err != nil {
		return thishost.ConfigError(err)
	}
	if f.to != "" {
		return writeFiles(f.to, files)
	}
	args := render.KubeletArgs(spec, instance, layout, spec.Join.Token != "")
	return printFiles(cmd.OutOrStdout(), files, args)
}

// asItJoins fills in how a machine authenticates if the NodeConfig does not say it: by its role, as nodes of EKS do.
func asItJoins(warnings io.Writer, spec nodeconfig.Spec, instance render.Instance) (nodeconfig.Spec, error) {
	if spec.Join.Proves() || spec.Join.DiscoveryFile != "" {
		return spec, nil
	}
	if spec.Join.InstanceRole = instance.Region != ""; spec.Join.InstanceRole {
		return spec, nil
	}
	_, err := io.WriteString(warnings, "Warning: there is no token, so a machine would join by its role; say --region REGION to see its kubeconfig, or give spec.join.token\n")
	return spec, err
}

func (f renderFlags) chosenLayout() (render.Layout, error) {
	switch f.layout {
	case layoutHost:
		layout := render.HostLayout()
		layout.ExistingContainerd = f.existingContainerd
		return layout, nil
	case layoutMachine:
		if f.existingContainerd {
			return render.Layout{}, terminal.UsageError{Err: errors.New("a machine of the local provider has no containerd of its own: leave out --existing-containerd or take --layout host")}
		}
		return render.MachineLayout(), nil
	}
	return render.Layout{}, terminal.UsageError{Err: fmt.Errorf("unknown layout %q; there are: %s, %s", f.layout, layoutHost, layoutMachine)}
}

// describe puts together what flags say, what the instance metadata service does, and what this machine is.
func (c *nodeConfigCommand) describe(ctx context.Context, f renderFlags) (render.Instance, render.Facts, error) {
	instance := render.Instance{ID: f.id, Type: f.instanceType, Region: f.region, AvailabilityZone: f.zone, PrivateDNSName: f.hostname}
	facts := render.Facts{CPUs: f.cpus, CgroupVersion: f.cgroupVersion, SysResource: true, OverlayFS: true, IPTables: f.layout == layoutHost}
	switch {
	case f.cpus < 0:
		return instance, facts, terminal.UsageError{Err: fmt.Errorf("invalid --cpus %d: must be at least 1", f.cpus)}
	case f.cgroupVersion < 0 || f.cgroupVersion > 2:
		return instance, facts, terminal.UsageError{Err: fmt.Errorf("invalid --cgroup-version %d: must be 1 or 2", f.cgroupVersion)}
	}
	if f.memory != "" {
		quantity, err := resource.ParseQuantity(f.memory)
		if err != nil || quantity.Sign() <= 0 {
			return instance, facts, terminal.UsageError{Err: fmt.Errorf("invalid --memory %q: must be an amount such as 8Gi", f.memory)}
		}
		facts.MemoryBytes = quantity.Value()
	}
	if f.nodeIP != "" {
		address, err := netip.ParseAddr(f.nodeIP)
		if err != nil {
			return instance, facts, terminal.UsageError{Err: fmt.Errorf("invalid --node-ip %q: must be an IP address", f.nodeIP)}
		}
		instance.PrivateIP = address
	}
	if slices.Contains(c.sources, configsource.UserData) {
		known, err := c.identity(ctx)
		if err != nil {
			return instance, facts, err
		}
		instance = completed(instance, render.Instance{
			ID: known.ID, Type: known.Type, Region: known.Region, AvailabilityZone: known.AvailabilityZone, AvailabilityZoneID: known.AvailabilityZoneID,
			PrivateIP: known.PrivateIP, IPv6: known.IPv6, PrivateDNSName: known.PrivateDNSName, PodRange: known.PodRange,
			Release: ami.Release(known.ImageID),
		})
	}
	if facts.CPUs == 0 || facts.MemoryBytes == 0 || facts.CgroupVersion == 0 || instance.PrivateDNSName == "" {
		own, err := c.machine()
		if err != nil {
			return instance, facts, err
		}
		instance = completed(instance, render.Instance{PrivateDNSName: own.Hostname})
		facts = withOwn(facts, own)
	}
	if !instance.PrivateIP.IsValid() {
		return instance, facts, terminal.UsageError{Err: errors.New("no address of the machine given: use --node-ip ADDRESS")}
	}
	return instance, facts, nil
}

func withOwn(facts render.Facts, own thishost.Hardware) render.Facts {
	facts.OpenFiles, facts.PIDs = own.OpenFiles, own.PIDs
	if facts.CPUs == 0 {
		facts.CPUs = own.CPUs
	}
	if facts.MemoryBytes == 0 {
		facts.MemoryBytes = own.MemoryBytes
	}
	if facts.CgroupVersion == 0 {
		facts.CgroupVersion = own.CgroupVersion
	}
	return facts
}

// completed fills in what was left open.
func completed(instance, by render.Instance) render.Instance {
	for _, field := range []struct {
		into *string
		from string
	}{
		{&instance.ID, by.ID},
		{&instance.Type, by.Type},
		{&instance.Region, by.Region},
		{&instance.AvailabilityZone, by.AvailabilityZone},
		{&instance.AvailabilityZoneID, by.AvailabilityZoneID},
		{&instance.PrivateDNSName, by.PrivateDNSName},
	} {
		if *field.into == "" {
			*field.into = field.from
		}
	}
	if !instance.PrivateIP.IsValid() {
		instance.PrivateIP, instance.IPv6 = by.PrivateIP, by.IPv6
	}
	if !instance.PodRange.IsValid() {
		instance.PodRange = by.PodRange
	}
	if instance.Release.Version == "" {
		instance.Release = by.Release
	}
	return instance
}

func printFiles(out io.Writer, files []render.File, args []string) error {
	var text bytes.Buffer
	for _, file := range files {
		fmt.Fprintf(&text, "==> %s %v <==\n%s\n", file.Path, file.Mode, bytes.TrimSuffix(file.Content, []byte("\n")))
		text.WriteString("\n")
	}
	text.WriteString("==> the kubelet's arguments <==\n" + strings.Join(args, "\n") + "\n")
	_, err := io.WriteString(out, termsafe.Lines(nodeconfig.WithoutSecrets(text.String()))) // user data chose part of it
	return err
}

// writeFiles writes files below a directory that has nothing in it, and follows no links out of it.
func writeFiles(dir string, files []render.File) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("writing files: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("writing files: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty; name a directory that is, or a new one", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("writing files: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, file := range files {
		if err := writeFile(root, strings.TrimPrefix(file.Path, "/"), file.Mode, file.Content); err != nil {
			return fmt.Errorf("writing %s: %w", file.Path, err)
		}
	}
	return nil
}

func writeFile(root *os.Root, name string, mode fs.FileMode, content []byte) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if err := root.WriteFile(name, content, mode.Perm()&^0o022); err != nil {
		return err
	}
	return root.Chmod(name, mode.Perm()) // whatever the umask is
}
