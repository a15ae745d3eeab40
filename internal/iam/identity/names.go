// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"slices"
	"strings"
)

// names reads the user name and the groups of an entry.
func (c *compiler) names(d draft) {
	if d.username == "" {
		c.refuse(d.fields.username, fault{"is missing", "give a user name: system:node:{{EC2PrivateDNSName}} for nodes, any other for people, such as team:{{SessionName}}"})
	} else if t, f := parseTemplate(d.username); f != nil {
		c.refuse(d.fields.username, *f)
	} else {
		c.rule.username = t
		c.username(d, t)
	}
	c.groups(d)
	c.rule.nodes = d.ofType || c.rule.makesNodes()
}

// makesNodes reports whether the user of an entry is a node, or may ask for a node's certificate.
func (r *rule) makesNodes() bool {
	return strings.HasPrefix(r.username.start(), nodePrefix) || slices.ContainsFunc(r.groups, func(group template) bool {
		return group.source == groupNodes || group.source == groupBootstrappers || strings.HasPrefix(group.start(), groupBootstrappers+":")
	})
}

// username says what may not be a user's name. The result of its variables is looked at again when they are filled in.
func (c *compiler) username(d draft, t template) {
	field := d.fields.username
	node := c.node(t)
	if prefix, ok := hasAny(t.source, c.rule.reserved); ok && !d.ofType {
		c.refuse(field, fault{fmt.Sprintf("begins with %s, which is reserved: %q", prefix, t.source), "give another name; nodes have an entry of their own type"})
		return
	}
	switch start := t.start(); {
	case node != proofNone:
		c.rule.proof = node
		if node == proofSession {
			c.sessions(d)
		}
	case strings.HasPrefix(start, nodePrefix):
		c.refuse(field, fault{
			fmt.Sprintf("is the name of a node that the session need not be: %q", t.source),
			"write system:node:{{EC2PrivateDNSName}}, or system:node:{{SessionName}} for instances whose nodes are named by their ids",
		})
	case strings.HasPrefix(start, systemPrefix) && !t.literal():
		c.refuse(field, fault{fmt.Sprintf("is of Kubernetes itself, with something to fill in: %q", t.source), "give a name that does not begin with system:"})
	case t.uses(varPrivateDNSName):
		c.rule.proof = proofEC2
	}
	if d.source == SourceAccessEntry && !d.ofType && !t.colonBefore(varSessionName, varSessionNameRaw) {
		c.refuse(field, fault{fmt.Sprintf("has the name of the session, which callers choose, before any colon: %q", t.source), "put a prefix with a colon before it, as in team:{{SessionName}}"})
	}
	if node == proofNone || slices.Contains(d.groups, groupNodes) {
		return
	}
	c.warn(d.fields.groups, fault{fmt.Sprintf("has no %s, so the node may do nothing", groupNodes), "add the group " + groupNodes})
}

// node tells what a session must prove to become a node by that name, or nothing if it is not a node's.
func (c *compiler) node(t template) proof {
	if len(t.parts) != 2 || t.parts[0].text != nodePrefix {
		return proofNone
	}
	switch t.parts[1].variable {
	case varPrivateDNSName:
		return proofEC2
	case varSessionName, varSessionNameRaw:
		return proofSession
	default:
		return proofNone
	}
}

const maxGroups = 100

func (c *compiler) groups(d draft) {
	field := d.fields.groups
	if len(d.groups) > maxGroups {
		c.refuse(field, fault{fmt.Sprintf("are %d", len(d.groups)), fmt.Sprintf("at most %d are allowed", maxGroups)})
		return
	}
	literal := true
	for i, group := range d.groups {
		field := fmt.Sprintf("%s[%d]", field, i)
		if group == "" {
			c.warn(field, fault{"is empty, and left out", "remove it, or give a name"})
			continue
		}
		t, f := parseTemplate(group)
		if f != nil {
			c.refuse(field, *f)
			continue
		}
		switch start := t.start(); {
		case strings.HasPrefix(start, PolicyGroupPrefix):
			c.refuse(field, fault{fmt.Sprintf("is a group of access policies: %q", group), "give an access entry the access policy instead"})
		case strings.HasPrefix(start, systemPrefix) && d.source == SourceAccessEntry && !d.ofType:
			c.refuse(field, fault{
				fmt.Sprintf("begins with system:, as groups of access entries cannot: %q", group),
				"use an access policy, such as AmazonEKSClusterAdminPolicy for system:masters, or an entry of type EC2_LINUX for nodes",
			})
		case strings.HasPrefix(start, systemPrefix) && !t.literal():
			c.refuse(field, fault{fmt.Sprintf("is of Kubernetes itself, with something to fill in: %q", group), "give a group that does not begin with system:"})
		case group == groupNodes && c.node(c.rule.username) == proofNone:
			c.refuse(field, fault{fmt.Sprintf("is %s, but the user name is not a node's: %q", groupNodes, d.username), "write the user name system:node:{{EC2PrivateDNSName}}, or remove the group"})
		}
		if slices.ContainsFunc(c.rule.groups, func(other template) bool { return other.source == t.source }) {
			continue
		}
		if t.uses(varPrivateDNSName) && c.rule.proof == proofNone {
			c.rule.proof = proofEC2
		}
		literal = literal && t.literal()
		c.rule.groups = append(c.rule.groups, t)
	}
	if d.added != "" {
		c.rule.groups = append(c.rule.groups, template{source: d.added, parts: []part{{text: d.added}}})
	}
	if literal {
		for _, t := range c.rule.groups {
			c.rule.fixed = append(c.rule.fixed, t.source)
		}
	}
}
