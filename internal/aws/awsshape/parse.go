// SPDX-License-Identifier: Apache-2.0

package awsshape

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parse reads a table. Each line is one thing; members follow their structure and begin with a space:
//
//	service eks restjson 2017-11-01
//	error ResourceInUseException 409 ResourceInUseException
//	operation DeleteCluster DeleteClusterRequest DeleteClusterResponse DELETE /clusters/{name}
//	operation DeleteAccessPoint DeleteAccessPointRequest - DELETE /access-points/{id} 204
//	structure DeleteClusterRequest
//	 name string label required
//	list StringList string
//	map TagMap string
//
// The words of a service are target=NAME, namespace=URL, signed=NAME, policies=NAME and identity, see [Service].
//
// An operation of restjson may end with the status of its answers; it is 200 otherwise.
//
// A member is a name, a kind or the name of a shape, and words: required, token, beyond, label, payload, flat (flatin,
// flatout), query=NAME, header=NAME, name=NAME (in=NAME, out=NAME), time=FORMAT. A list may have in=NAME and out=NAME
// for its items. "-" stands for no shape, and # begins a comment.
func Parse(text string) (*Service, error) {
	p := parser{scalars: map[string]*Shape{}}
	for kind, name := range kindNames {
		if kind < Structure {
			p.scalars[name] = &Shape{Kind: kind}
		}
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if err := p.line(strings.TrimSuffix(line, "\n")); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if p.service == nil {
		return nil, fmt.Errorf("the table names no service")
	}
	for _, resolve := range p.later {
		if err := resolve(); err != nil {
			return nil, err
		}
	}
	s := p.service
	slices.SortFunc(s.Operations, func(a, b *Operation) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Faults, func(a, b *Fault) int { return strings.Compare(a.Code, b.Code) })
	return s, nil
}

type parser struct {
	service *Service
	scalars map[string]*Shape
	current *Shape         // the structure that members are read for
	later   []func() error // references, once all shapes are known
}

func (p *parser) line(line string) error {
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	words := strings.Fields(line)
	if len(words) < 2 {
		return fmt.Errorf("%q has too few words", line)
	}
	if strings.HasPrefix(line, " ") {
		return p.member(words)
	}
	p.current = nil
	if words[0] == "service" {
		return p.head(words[1:])
	}
	if p.service == nil {
		return fmt.Errorf("%q comes before the service", line)
	}
	switch words[0] {
	case "error":
		return p.fault(words[1:])
	case "operation":
		return p.operation(words[1:])
	case "structure", "union", "list", "map":
		return p.shape(words)
	}
	return fmt.Errorf("%q is not a kind of line", words[0])
}

func (p *parser) head(words []string) error {
	if p.service != nil || len(words) < 3 {
		return fmt.Errorf("the service needs a name, a protocol and a version, once")
	}
	s := &Service{
		Name: words[0], Protocol: Protocol(words[1]), Version: words[2],
		operations: map[string]*Operation{}, faults: map[string]*Fault{}, shapes: map[string]*Shape{},
	}
	if !slices.Contains([]Protocol{RestJSON, JSON10, JSON11, QueryXML, EC2Query}, s.Protocol) {
		return fmt.Errorf("protocol %q is unknown", s.Protocol)
	}
	for _, word := range words[3:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "target":
			s.Target = value
		case "namespace":
			s.Namespace = value
		case "signed":
			s.Signed = value
		case "policies":
			s.Policies = value
		case "identity":
			s.Identity = true
		default:
			return fmt.Errorf("the service's word %q is unknown", word)
		}
	}
	p.service = s
	return nil
}

func (p *parser) fault(words []string) error {
	if len(words) != 3 {
		return fmt.Errorf("an error has a code, a status and a shape")
	}
	status, err := strconv.Atoi(words[1])
	if err != nil || status < 400 || status > 599 {
		return fmt.Errorf("status %q is not one of an error", words[1])
	}
	f := &Fault{Code: words[0], Status: status}
	if p.service.faults[f.Code] != nil {
		return fmt.Errorf("error %s comes twice", f.Code)
	}
	p.service.faults[f.Code] = f
	p.service.Faults = append(p.service.Faults, f)
	p.refer(words[2], &f.Shape)
	return nil
}

func (p *parser) operation(words []string) error {
	rest := p.service.Protocol == RestJSON
	if rest && len(words) != 5 && len(words) != 6 || !rest && len(words) != 3 {
		return fmt.Errorf("an operation has a name, an input and an output, and with restjson a method and a path, and perhaps a status")
	}
	op := &Operation{Service: p.service, Name: words[0], Status: 200}
	if len(words) == 6 {
		var err error
		if op.Status, err = strconv.Atoi(words[5]); err != nil || op.Status < 200 || op.Status > 299 {
			return fmt.Errorf("status %q is not one of success", words[5])
		}
	}
	if p.service.operations[op.Name] != nil {
		return fmt.Errorf("operation %s comes twice", op.Name)
	}
	p.service.operations[op.Name] = op
	p.service.Operations = append(p.service.Operations, op)
	p.refer(words[1], &op.Input)
	p.refer(words[2], &op.Output)
	if !rest {
		return nil
	}
	op.Method, op.Path = words[3], words[4]
	for part := range strings.SplitSeq(strings.TrimPrefix(op.Path, "/"), "/") {
		label, isLabel := strings.CutPrefix(part, "{")
		label, closed := strings.CutSuffix(label, "}")
		if isLabel != closed || strings.ContainsAny(label, "{}+?") {
			return fmt.Errorf("path %q: a label is a whole segment such as {name}", op.Path)
		}
		if !isLabel {
			op.segments = append(op.segments, segment{literal: part})
			continue
		}
		op.segments = append(op.segments, segment{label: label})
		p.later = append(p.later, func() error {
			if op.Input == nil || op.Input.Member(label) == nil || op.Input.Member(label).Place != Label {
				return fmt.Errorf("operation %s: the input has no label %s", op.Name, label)
			}
			return nil
		})
	}
	return nil
}

func (p *parser) shape(words []string) error {
	s := &Shape{Name: words[1]}
	if p.service.shapes[s.Name] != nil || p.scalars[s.Name] != nil {
		return fmt.Errorf("shape %s comes twice", s.Name)
	}
	p.service.shapes[s.Name] = s
	switch words[0] {
	case "structure", "union":
		s.Kind, s.byName, s.byIn = Structure, map[string]*Member{}, map[string]*Member{}
		if words[0] == "union" {
			s.Kind = Union
		}
		p.current = s
		return nil
	case "list":
		s.Kind, s.ItemIn, s.ItemOut = List, "member", "member"
	default:
		s.Kind = Map
	}
	if len(words) < 3 {
		return fmt.Errorf("%s needs a shape for what is in it", s.Name)
	}
	p.refer(words[2], &s.Item)
	for _, word := range words[3:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "in":
			s.ItemIn = value
		case "out":
			s.ItemOut = value
		default:
			return fmt.Errorf("%s: the word %q is unknown", s.Name, word)
		}
	}
	return nil
}

func (p *parser) member(words []string) error {
	s := p.current
	if s == nil {
		return fmt.Errorf("member %s belongs to no structure", words[0])
	}
	m := &Member{Name: words[0], In: words[0], Out: words[0]}
	for _, word := range words[2:] {
		if err := m.word(word); err != nil {
			return fmt.Errorf("member %s of %s: %w", m.Name, s.Name, err)
		}
	}
	if s.byName[m.Name] != nil || m.Place == Body && s.byIn[m.In] != nil {
		return fmt.Errorf("member %s of %s comes twice", m.Name, s.Name)
	}
	s.byName[m.Name] = m
	if m.Place == Body {
		s.byIn[m.In] = m
	}
	s.Members = append(s.Members, m)
	p.refer(words[1], &m.Shape)
	return nil
}

func (m *Member) word(word string) error {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "required":
		m.Required = true
	case "beyond":
		m.Beyond = true
	case "token":
		m.Token = true
	case "label":
		m.Place = Label
	case "payload":
		m.Place = Payload
	case "query":
		m.Place, m.In = Query, value
	case "header":
		m.Place, m.In, m.Out = Header, value, value
	case "flat":
		m.FlatIn, m.FlatOut = true, true
	case "flatin":
		m.FlatIn = true
	case "flatout":
		m.FlatOut = true
	case "name":
		m.In, m.Out = value, value
	case "in":
		m.In = value
	case "out":
		m.Out = value
	case "time":
		format, ok := map[string]TimeFormat{"date-time": DateTime, "epoch-seconds": Epoch, "http-date": HTTPDate}[value]
		if !ok {
			return fmt.Errorf("time format %q is unknown", value)
		}
		m.Time = format
	default:
		return fmt.Errorf("the word %q is unknown", word)
	}
	return nil
}

// refer sets a shape once all are known.
func (p *parser) refer(name string, into **Shape) {
	if name == "-" {
		return
	}
	if scalar := p.scalars[name]; scalar != nil {
		*into = scalar
		return
	}
	p.later = append(p.later, func() error {
		*into = p.service.shapes[name]
		if *into == nil {
			return fmt.Errorf("shape %s is used and not described", name)
		}
		return nil
	})
}
