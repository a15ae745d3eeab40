// SPDX-License-Identifier: Apache-2.0

package main

// tool is one tool: what a client is told of it, and the command that each call runs.
type tool struct {
	name, title, description string
	command                  []string
	arguments                []argument
	// anywhere reports whether the command takes --kubeconfig, and so works with any cluster.
	anywhere bool
}

// argument is one argument of a tool.
type argument struct {
	name, description string
	// flag that the value is of; empty for a word of the command line.
	flag     string
	required bool
	values   []string // empty for any text
	most     int      // bytes of a text
	lines    bool     // whether a text may have several lines
	number   bool     // whether the value is a whole number, from 1 to most
}

// Limits of arguments, in bytes.
const (
	mostName  = 253
	mostARN   = 2048
	mostQuery = 10000 // StartQuery of CloudWatch Logs takes as many characters
)

// Rows of an answer to a query.
const (
	usualRows = "100"
	mostRows  = 1000
)

func ofCluster() argument {
	return argument{name: "cluster", flag: "--cluster", most: mostName, description: "name of the cluster; needed where there are several"}
}

// tools are all that there are.
func tools() []tool {
	return []tool{
		{
			name: "explain", title: "What is wrong, and why",
			description: "Why a machine is not a node, or another object of a cluster is not as it should be: causes with identifier, evidence and fix, steps, and what could not be seen. " +
				"Without kind and name: all that is wrong now. The same as `muster explain -o json`. A cause is named by evidence alone: where none is named, do not guess one.",
			command: []string{"explain"}, anywhere: true,
			arguments: []argument{
				{name: "kind", values: kinds(), description: "kind of the object; goes with name"},
				{name: "name", most: mostName, description: "name of the object; a machine goes by its instance id, its node's name or its private address; a pod, a volume (by its claim) and a service are called NAMESPACE/NAME"},
				ofCluster(),
			},
		},
		{
			name: "auth_check", title: "Who an IAM identity becomes",
			description: "Every wrong access entry or line of aws-auth, with its fix; or, with principal, the user and groups that an IAM role, session or user becomes in the cluster, by which entry, " +
				"and why the others do not match. The same as `muster auth check -o json`.",
			command: []string{"auth", "check"}, anywhere: true,
			arguments: []argument{
				{name: "principal", most: mostARN, description: "ARN of a role, a session of one or a user"},
				{name: "session_name", flag: "--session-name", most: mostName, description: "name of the session of a role"},
				{name: "instance", flag: "--instance", most: mostName, description: "suppose that the session is proven to be this instance's"},
				{name: "private_dns_name", flag: "--private-dns-name", most: mostName, description: "private DNS name of that instance"},
				{name: "machine_cluster", flag: "--machine-cluster", most: mostName, description: "cluster that the instance was launched for"},
				ofCluster(),
			},
		},
		{
			name: "csr_explain", title: "Why a certificate was issued or refused",
			description: "What a certificate signing request asks for, its state, and what each rule said about it. The same as `muster csr explain -o json`.",
			command:     []string{"csr", "explain"}, anywhere: true,
			arguments: []argument{{name: "name", most: mostName, required: true, description: "name of the request"}, ofCluster()},
		},
		{
			name: "log_query", title: "Search the logs of a control plane",
			description: "Rows of the logs of a cluster's control plane that a query in the language of CloudWatch Logs Insights finds. The same as `muster logs query -o json`. " +
				"Logs are kept of the log types that are switched on.",
			command: []string{"logs", "query"},
			arguments: []argument{
				{name: "query", most: mostQuery, lines: true, required: true, description: "such as: fields @timestamp, @message | filter @message like /csr-kdkll/ | sort @timestamp asc"},
				{name: "since", flag: "--since", most: 20, description: "only events from this long ago on, such as 10m or 24h; one hour if it is left out"},
				{name: "start", flag: "--start", most: 40, description: "in place of since: only events from this moment on, such as 2026-11-20T12:00:00Z"},
				{name: "end", flag: "--end", most: 40, description: "with start: only events up to this moment"},
				{name: "limit", flag: "--limit", number: true, most: mostRows, description: "only this many rows; " + usualRows + " if it is left out"},
				ofCluster(),
			},
		},
		{
			name: "status", title: "How the installation is",
			description: "The service, its clusters with their components and node groups, and the reason of each machine that is not Ready. The same as `muster status -o json`.",
			command:     []string{"status"},
		},
	}
}

// kinds are those that muster explain takes.
func kinds() []string {
	return []string{"node", "machine", "nodegroup", "cluster", "csr", "update", "pod", "volume", "service", "host", "stack"}
}

// schema is the JSON schema of the tool's arguments.
func (t tool) schema() map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, a := range t.arguments {
		one := map[string]any{"type": "string", "description": a.description}
		switch {
		case a.number:
			one["type"], one["minimum"], one["maximum"] = "integer", 1, a.most
		case len(a.values) > 0:
			one["enum"] = a.values
		default:
			one["maxLength"] = a.most
		}
		properties[a.name] = one
		if a.required {
			required = append(required, a.name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}
