// SPDX-License-Identifier: Apache-2.0

package queryvalue

import (
	"maps"
	"slices"
	"strconv"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
)

// Read decodes the parameters. It also returns the names of parameters that the shape does not have, sorted. Every
// error is an *awsfault.Error.
func (f *Form) Read(shape *awsshape.Shape) (object awsshape.Object, unknown []string, err error) {
	r := reader{form: f}
	object = awsshape.Object{}
	if shape == nil {
		r.all("", f.root)
	} else {
		object, err = r.structure("", shape, f.root)
	}
	slices.Sort(r.unknown)
	return object, r.unknown, err
}

type reader struct {
	form    *Form
	unknown []string
}

// all counts a node and every parameter below it as unknown.
func (r *reader) all(name string, n *node) {
	if n.has {
		r.unknown = append(r.unknown, name)
	}
	r.parts(name, n)
}

// parts counts every parameter below a node as unknown.
func (r *reader) parts(name string, n *node) {
	for part, below := range n.parts {
		r.all(join(name, part), below)
	}
}

func join(name, part string) string {
	if name == "" {
		return part
	}
	return name + "." + part
}

func (r *reader) structure(name string, s *awsshape.Shape, n *node) (awsshape.Object, error) {
	object := awsshape.Object{}
	for _, part := range slices.Sorted(maps.Keys(n.parts)) {
		m := s.MemberIn(part)
		if m == nil {
			r.all(join(name, part), n.parts[part])
			continue
		}
		value, err := r.value(join(name, part), m.Shape, n.parts[part], m)
		if err != nil {
			return nil, err
		}
		object[m.Name] = value
	}
	return object, nil
}

// value reads what a node stands for. The member is nil for the items of a list.
func (r *reader) value(name string, s *awsshape.Shape, n *node, m *awsshape.Member) (any, error) {
	switch s.Kind {
	case awsshape.Structure, awsshape.Union:
		if n.has && r.form.codes.Strict {
			r.unknown = append(r.unknown, name)
		} else if n.has {
			return nil, awsfault.Errorf(r.form.codes.Value, "the parameter %.200s is a structure: it has parts and no value", name)
		}
		return r.structure(name, s, n)
	case awsshape.List:
		return r.list(name, s, n, m != nil && m.FlatIn)
	case awsshape.Map:
		return r.entries(name, s, n, m != nil && m.FlatIn)
	default:
	}
	if err := r.single(name, n); err != nil {
		return nil, err
	}
	format := awsshape.DateTime
	if m != nil && m.Time != awsshape.Usual {
		format = m.Time
	}
	value, err := s.Scalar(n.value, format)
	if whole, ok := value.(int64); r.form.codes.Strict && (err != nil || ok && strconv.FormatInt(whole, 10) != n.value) { // one spelling: no 007
		return nil, awsfault.Errorf(r.form.codes.Value, "the parameter %.200s is %.50q: it must be %s", name, n.value, wanted(s.Kind))
	}
	if err != nil {
		return nil, awsfault.Errorf(r.form.codes.Value, "the parameter %.200s: %v", name, err)
	}
	return value, nil
}

// single refuses a scalar that has parts in place of a value, and notes parts beside a value as unknown where the
// dialect has it so.
func (r *reader) single(name string, n *node) error {
	switch strict := r.form.codes.Strict; {
	case strict && !n.has:
		return awsfault.Errorf(r.form.codes.Value, "the parameter %.200[1]s is one value: it has no parts such as %.200[1]s.member.1", name)
	case strict:
		r.parts(name, n)
	case !n.has || n.parts != nil:
		return awsfault.Errorf(r.form.codes.Value, "the parameter %.200s is one value: it has no parts", name)
	}
	return nil
}

// wanted is what a scalar must be, in the words of STS and IAM.
func wanted(kind awsshape.Kind) string {
	switch kind {
	case awsshape.Integer, awsshape.Long:
		return "a whole number"
	case awsshape.Boolean:
		return "true or false"
	default:
		return "a " + kind.String()
	}
}

func (r *reader) list(name string, s *awsshape.Shape, n *node, flat bool) (any, error) {
	items := []any{}
	err := r.numbered(name, n, s.ItemIn, flat, func(name string, item *node) error {
		value, err := r.value(name, s.Item, item, nil)
		items = append(items, value)
		return err
	})
	return items, err
}

// entries reads a map: Attributes.entry.1.key=a&Attributes.entry.1.value=b.
func (r *reader) entries(name string, s *awsshape.Shape, n *node, flat bool) (any, error) {
	object := awsshape.Object{}
	err := r.numbered(name, n, "entry", flat, func(name string, entry *node) error {
		key, item := entry.parts["key"], entry.parts["value"]
		if key == nil || !key.has || item == nil || len(entry.parts) != 2 {
			return awsfault.Errorf(r.form.codes.Value, "the parameter %.200s has a key and a value", name)
		}
		if _, twice := object[key.value]; twice {
			return awsfault.Errorf(r.form.codes.Value, "the parameter %.200s.key is %.100q a second time", name, key.value)
		}
		value, err := r.value(name+".value", s.Item, item, nil)
		object[key.value] = value
		return err
	})
	return object, err
}

// numbered calls f for each of the parts 1, 2, 3… An empty value stands for none.
func (r *reader) numbered(name string, n *node, level string, flat bool, f func(string, *node) error) error {
	if r.form.codes.Strict {
		return r.counted(name, n, level, f)
	}
	if n.has && (n.value != "" || n.parts != nil) {
		return awsfault.Errorf(r.form.codes.Value, "the parameter %.200s is a list: its items are %.200s", name, example(name, level, flat))
	}
	if !flat && n.parts != nil {
		if n.parts[level] == nil || len(n.parts) != 1 || n.parts[level].has {
			return awsfault.Errorf(r.form.codes.Value, "the parameter %.200s is a list: its items are %.200s", name, example(name, level, flat))
		}
		n, name = n.parts[level], name+"."+level
	}
	if len(n.parts) > r.form.limits.Items {
		return awsfault.Errorf(r.form.codes.Value, "the parameter %.200s has more than %d items", name, r.form.limits.Items)
	}
	numbers := make([]int, 0, len(n.parts))
	for part := range n.parts {
		number, err := strconv.Atoi(part)
		if err != nil || number < 1 || strconv.Itoa(number) != part {
			return awsfault.Errorf(r.form.codes.Value, "the parameter %.200s.%.50s: items of a list are numbered from 1", name, part)
		}
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	for _, number := range numbers {
		part := strconv.Itoa(number)
		if err := f(name+"."+part, n.parts[part]); err != nil {
			return err
		}
	}
	return nil
}

// counted is numbered for strict forms: items count 1, 2, 3 without a gap, and all else below the list is unknown.
func (r *reader) counted(name string, n *node, level string, f func(string, *node) error) error {
	if n.has && n.value != "" {
		return awsfault.Errorf(r.form.codes.Value, "the parameter %.200[1]s is a list: write %.200[1]s.%[2]s.1", name, level)
	}
	items, rest := n.parts[level], maps.Clone(n.parts)
	delete(rest, level)
	r.parts(name, &node{parts: rest})
	if items == nil {
		return nil
	}
	name = join(name, level)
	if items.has {
		r.unknown = append(r.unknown, name)
	}
	rest = maps.Clone(items.parts)
	for number := 1; number <= r.form.limits.Items; number++ {
		part := strconv.Itoa(number)
		item := rest[part]
		if item == nil {
			break
		}
		delete(rest, part)
		if err := f(join(name, part), item); err != nil {
			return err
		}
	}
	r.parts(name, &node{parts: rest})
	return nil
}

func example(name, level string, flat bool) string {
	if flat {
		return name + ".1"
	}
	return name + "." + level + ".1"
}
