// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/cmd/muster/thishost"
	"muster.dev/muster/internal/node/configsource"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/node/userdata"
	"muster.dev/muster/internal/platform/table"
	"muster.dev/muster/internal/platform/termsafe"
)

// nodeConfigCommand is "muster node config": it reads what a machine would read, and does nothing of it.
type nodeConfigCommand struct {
	// userData asks the instance metadata service.
	userData func(context.Context) ([]byte, error)
	// identity asks it who this machine is.
	identity func(context.Context) (imds.Identity, error)
	// machine finds out what this machine is.
	machine func() (thishost.Hardware, error)

	// binDir is where programs of this installation are.
	binDir func() (string, error)

	sources []string
	lenient bool
	// ignored are parts of the sources that nothing carries out.
	ignored []string
}

func newNodeConfigCommand() *cobra.Command {
	client := imds.NewClient("")
	c := &nodeConfigCommand{
		userData: func(ctx context.Context) ([]byte, error) {
			raw, err := client.UserData(ctx)
			if errors.Is(err, imds.ErrNotFound) {
				return nil, nil // launched without any
			}
			return raw, err
		},
		identity: client.Identity,
		machine:  thishost.ReadHardware,
		binDir:   ownDirectory,
	}
	return c.command()
}

func (c *nodeConfigCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and show a NodeConfig, and the files that a machine would make of it",
		Long: `Check and show the NodeConfig of a machine, and the files that the machine would make of it, without touching the system.

Sources are read and merged in the order that they are named; what comes later wins. Each may be base64, gzip or MIME multipart,
as user data may. See docs/node-config.md.`,
		Args: terminal.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []*cobra.Command{c.check(), c.show(), c.render()} {
		sub.Args = terminal.UsageArgs(cobra.NoArgs)
		flags := sub.Flags()
		flags.StringArrayVarP(&c.sources, "config-source", "c", []string{configsource.UserData},
			"where to read: "+configsource.UserData+", file://PATH or PATH of a file or a directory, or - for standard input; repeatable")
		flags.BoolVar(&c.lenient, "lenient", false, "only warn about fields that are not known, and ignore them")
		cmd.AddCommand(sub)
	}
	return cmd
}

// read reads and merges all sources, and prints their warnings to standard error.
func (c *nodeConfigCommand) read(cmd *cobra.Command) (nodeconfig.Merged, int, error) {
	for _, name := range c.sources {
		if err := configsource.Check(name); err != nil {
			return nodeconfig.Merged{}, 0, terminal.UsageError{Err: err}
		}
	}
	found, err := configsource.Load(cmd.Context(), c.sources, configsource.Readers{UserData: c.userData, Stdin: cmd.InOrStdin()})
	if err != nil {
		return nodeconfig.Merged{}, 0, err
	}
	c.ignored = userdata.Ignored(found.Parts)
	warnings := found.Doubts
	merged, err := nodeconfig.Read(found.Documents, c.lenient)
	if err == nil {
		warnings = append(warnings, merged.Warnings...)
	}
	for _, warning := range warnings {
		if _, err := io.WriteString(cmd.ErrOrStderr(), termsafe.Lines("Warning: "+warning+"\n")); err != nil {
			return nodeconfig.Merged{}, 0, err
		}
	}
	if errors.Is(err, nodeconfig.ErrNone) {
		return nodeconfig.Merged{}, 0, fmt.Errorf("there is no NodeConfig in %s%s", strings.Join(c.sources, ", "), others(found))
	}
	return merged, len(found.Documents), thishost.ConfigError(err)
}

// others says what a source holds instead of a NodeConfig.
func others(found configsource.Found) string {
	var types []string
	for _, part := range found.Parts {
		if !slices.Contains(types, part.MediaType) {
			types = append(types, part.MediaType)
		}
	}
	if len(types) == 0 {
		return ", which holds nothing"
	}
	text := ", which holds " + strings.Join(types, ", ")
	const script = "/etc/eks/" + bootstrapScript
	if slices.ContainsFunc(found.Parts, func(part userdata.Part) bool { return bytes.Contains(part.Content, []byte(script)) }) {
		text += "; what a script says to " + script + " is known when it has run"
	}
	return text
}

func (c *nodeConfigCommand) check() *cobra.Command {
	var f renderFlags
	cmd := &cobra.Command{
		Use:   "check [-c SOURCE]",
		Short: "Check whether a machine could become a node with a NodeConfig, and list every problem",
		Long: `Check whether a machine could become a node with a NodeConfig, and list every problem with the path of its field. The exit code is 1 if
there is a problem.

Only the kubelet itself can check the names of feature gates, and reservations against the capacity of this machine: that is done by
kubelet-config-check, if it is among muster's programs.`,
		Example: `  # What this machine was launched with
  muster node config check

  # User data before it is put into a launch template, with what is added on the machine
  muster node config check -c user-data.txt -c /etc/eks/nodeadm.d

  # From a pipe
  kubectl get secret worker -o jsonpath='{.data.value}' | muster node config check -c -`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			layout, err := f.chosenLayout()
			if err != nil {
				return err
			}
			merged, documents, err := c.read(cmd)
			if err != nil {
				return err
			}
			problems := f.problems(merged.Spec, layout)
			if merged.Spec.Instance.UserDataFailurePolicy != nodeconfig.Ignore {
				problems = append(problems, c.ignored...)
			}
			if len(problems) == 0 {
				problems, err = c.checkKubelet(cmd, f, merged.Spec, layout)
			}
			if err != nil {
				return err
			}
			if len(problems) > 0 {
				return thishost.ConfigError(problems)
			}
			for _, note := range render.Notes(merged.Spec, layout) {
				if _, err := io.WriteString(cmd.ErrOrStderr(), termsafe.Lines("Warning: "+note+"\n")); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "The NodeConfig is good: %s.\n", terminal.Count(documents, "document", "documents"))
			return err
		},
	}
	f.addCommon(cmd)
	return cmd
}

func (c *nodeConfigCommand) show() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "show [-c SOURCE]",
		Short: "Show the merged NodeConfig, and the source of each value",
		Long: `Show the merged NodeConfig, and the source of each value. Tokens, passwords and what is named like one are not shown.

As YAML and JSON it is an object with the merged document (nodeConfig) and its values (values: path, value, from).`,
		Example: `  muster node config show
  muster node config show -c user-data.txt -c more.yaml
  muster node config show -c user-data.txt -o json | jq .nodeConfig`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := terminal.CheckOutput(output, terminal.FormatTable, terminal.FormatYAML, terminal.FormatJSON); err != nil {
				return err
			}
			merged, _, err := c.read(cmd)
			if err != nil {
				return err
			}
			return showConfig(cmd.OutOrStdout(), output, merged)
		},
	}
	terminal.AddFormatFlag(cmd, &output, terminal.FormatTable, terminal.FormatTable, terminal.FormatYAML, terminal.FormatJSON)
	return cmd
}

// shownConfig is what "show" prints as data.
type shownConfig struct {
	NodeConfig struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Spec       nodeconfig.Spec `json:"spec"`
	} `json:"nodeConfig"`
	Values []nodeconfig.Value `json:"values"`
}

func showConfig(out io.Writer, output string, merged nodeconfig.Merged) error {
	values, err := merged.Values()
	if err != nil {
		return err
	}
	if output != terminal.FormatTable {
		var all shownConfig
		all.NodeConfig.APIVersion, all.NodeConfig.Kind, all.Values = nodeconfig.APIVersion, nodeconfig.Kind, values
		if all.NodeConfig.Spec, err = merged.Spec.Redacted(); err != nil {
			return err
		}
		return terminal.PrintData(out, output, all)
	}
	rows := table.New(out, "FIELD", "VALUE", "FROM")
	for _, value := range values {
		short := shortValue(value.Value)
		if value.Path == "spec.cluster.certificateAuthority" {
			short = fmt.Sprintf("(certificates: %d)", bytes.Count(merged.Spec.Cluster.CertificateAuthority, []byte("-----BEGIN CERTIFICATE-----")))
		}
		rows.Row(value.Path, short, value.From)
	}
	return rows.Flush()
}

// shortValue is a value as it fits into a table.
func shortValue(value any) string {
	const most = 60
	text, ok := value.(string)
	if !ok || text == "" {
		raw, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value)
		}
		text = string(raw)
	}
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
