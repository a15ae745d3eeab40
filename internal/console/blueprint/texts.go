// SPDX-License-Identifier: Apache-2.0

package blueprint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/platform/shellquote"
)

// networkAddon is the add-on without which eksctl makes no machines of a cluster in the same run (validateBareCluster in its
// pkg/ctl/cmdutils/configfile.go).
const networkAddon = "vpc-cni"

// Place is what eksctl's file needs to know of the account, beside a blueprint.
type Place struct {
	Region string
	// Private are the subnets whose machines have no public address.
	Private map[string]bool
}

// Commands renders a blueprint without problems as commands of AWS's CLI, without client tokens.
func (b Blueprint) Commands() (string, error) {
	b.Token = ""
	var out strings.Builder
	for i, r := range b.Requests() {
		if i == 1 && !b.Exists {
			fmt.Fprintf(&out, "aws eks wait cluster-active --name %s\n", shellquote.Quote(b.Name))
		}
		line, err := command(r)
		if err != nil {
			return "", err
		}
		out.WriteString(line + "\n")
	}
	return out.String(), nil
}

// command is a command of AWS's CLI, an option a line.
func command(r Request) (string, error) {
	lines := []string{"aws eks " + kebab(r.Action)}
	for _, name := range slices.Sorted(maps.Keys(r.Input)) {
		option := "--" + kebab(name)
		if name == "version" { // --version is the CLI's own
			option = "--kubernetes-version"
		}
		switch value := r.Input[name].(type) {
		case bool:
			if !value {
				option = "--no-" + kebab(name)
			}
		case string:
			option += " " + shellquote.Quote(value)
		case int64:
			option += fmt.Sprintf(" %d", value)
		case []any:
			for _, one := range value {
				option += " " + shellquote.Quote(fmt.Sprint(one))
			}
		case awsshape.Object:
			text, err := json.Marshal(value)
			if err != nil {
				return "", fmt.Errorf("writing the option %s: %w", option, err)
			}
			option += " " + quoted(string(text))
		default:
			return "", fmt.Errorf("option %s has a value of type %T", option, value)
		}
		lines = append(lines, "  "+option)
	}
	return strings.Join(lines, " \\\n"), nil
}

// quoted is JSON as a word of a shell: between single quotes where that can be.
func quoted(text string) string {
	if strings.Contains(text, "'") {
		return shellquote.Quote(text)
	}
	return "'" + text + "'"
}

// kebab is a name as an option has it: clusterName is cluster-name.
func kebab(name string) string {
	var out strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte('-')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

// Eksctl renders a blueprint without problems as a ClusterConfig of eksctl (eksctl.io/v1alpha5).
func (b Blueprint) Eksctl(at Place) (string, error) {
	metadata := map[string]any{"name": b.Name}
	if at.Region != "" {
		metadata["region"] = at.Region
	}
	file := map[string]any{"apiVersion": "eksctl.io/v1alpha5", "kind": "ClusterConfig", "metadata": metadata}
	note := "# eksctl create nodegroup -f FILE; for a cluster that eksctl did not make, add vpc.id, vpc.securityGroup and vpc.subnets\n"
	if !b.Exists {
		note = "# eksctl create cluster -f FILE\n"
		metadata["version"] = b.Version
		b.eksctlCluster(file, at)
		if len(b.Groups) > 0 && !b.AutoMode && !slices.Contains(b.Addons, networkAddon) {
			note += "# eksctl makes node groups in a cluster without the add-on " + networkAddon + " by a second command: eksctl create nodegroup -f FILE\n"
		}
	}
	var groups []any
	for _, g := range b.Groups {
		groups = append(groups, b.eksctlGroup(g, at))
	}
	if len(groups) > 0 {
		file["managedNodeGroups"] = groups
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		return "", fmt.Errorf("writing eksctl's file: %w", err)
	}
	return note + string(text), nil
}

// eksctlCluster adds what is of the cluster.
func (b Blueprint) eksctlCluster(file map[string]any, at Place) {
	file["iam"] = map[string]any{"serviceRoleARN": b.RoleARN}
	file["accessConfig"] = map[string]any{"authenticationMode": "API_AND_CONFIG_MAP"}
	file["addonsConfig"] = map[string]any{"disableDefaultAddons": true} // the chosen add-ons are listed
	subnets := map[string]any{}
	for _, id := range b.SubnetIDs {
		kind := "public"
		if at.Private[id] {
			kind = "private"
		}
		if subnets[kind] == nil {
			subnets[kind] = map[string]any{}
		}
		subnets[kind].(map[string]any)[id] = map[string]any{"id": id} //nolint:forcetypeassert // made above
	}
	file["vpc"] = map[string]any{"subnets": subnets}
	if len(b.LoggingTypes) > 0 {
		file["cloudWatch"] = map[string]any{"clusterLogging": map[string]any{"enableTypes": b.LoggingTypes}}
	}
	var addons []any
	for _, name := range b.sortedAddons() {
		addons = append(addons, map[string]any{"name": name})
	}
	if len(addons) > 0 {
		file["addons"] = addons
	}
	if b.AutoMode {
		file["autoModeConfig"] = map[string]any{"enabled": true, "nodePools": []any{"general-purpose", "system"}, "nodeRoleARN": b.AutoNodeRole}
	}
}

// eksctlGroup is a managed node group.
func (b Blueprint) eksctlGroup(g Group, at Place) map[string]any {
	group := map[string]any{
		"name": g.Name, "instanceTypes": g.InstanceTypes, "minSize": g.MinSize, "desiredCapacity": g.DesiredSize, "maxSize": g.MaxSize, "volumeSize": g.DiskSize,
		"spot": false, "iam": map[string]any{"instanceRoleARN": b.NodeRole(g)}, "subnets": b.SubnetIDs,
	}
	private := len(b.SubnetIDs) > 0
	for _, id := range b.SubnetIDs {
		private = private && at.Private[id]
	}
	if private {
		group["privateNetworking"] = true
	}
	if len(g.Labels) > 0 {
		group["labels"] = g.Labels
	}
	return group
}
