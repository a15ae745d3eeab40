// SPDX-License-Identifier: Apache-2.0

package awsquery

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Decode fills the struct that into points to. A field takes the parameter of its own name, or the one that its tag names:
//
//	type in struct {
//		UserName    string            `query:",required"`
//		Path        *string           // nil if it did not come
//		MaxItems    *int32
//		SetDefault  bool
//		Tags        []Tag             // Tags.member.1.Key=…; a struct is decoded in turn
//		TagKeys     []string          // TagKeys.member.1=…
//		Attributes  map[string]string // Attributes.entry.1.key=…&Attributes.entry.1.value=…
//	}
//
// A parameter that no field takes is an error, and so is a list that does not count 1, 2, 3. Every error is an *awsfault.Error.
func Decode(params url.Values, into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("awsquery: cannot decode into %T: a pointer to a struct is needed", into)
	}
	d := decoder{params: params, used: map[string]bool{}, stems: map[string]bool{}}
	for key := range params {
		for i := range len(key) {
			if key[i] == '.' {
				d.stems[key[:i]] = true
			}
		}
		d.stems[key] = true
	}
	if err := d.structure("", target.Elem()); err != nil {
		return err
	}
	if len(d.missing) > 0 {
		return nulls(d.missing)
	}
	var unknown []string
	for key := range params {
		if !d.used[key] {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) > 0 {
		return Errorf(ValidationError, "the parameter %q is not one that this action takes here; muster refuses what it would have to ignore "+
			"(lists count from 1 without a gap)", slices.Min(unknown))
	}
	return nil
}

// nulls says in AWS's words which parameters are missing: Tags.member.1.Key is tags.1.member.key there.
func nulls(missing []string) error {
	told := make([]string, 0, len(missing))
	for _, key := range missing {
		parts := strings.Split(key, ".")
		for i, part := range parts {
			parts[i] = strings.ToLower(part[:1]) + part[1:]
		}
		for i := 0; i+1 < len(parts); i++ {
			if parts[i] == "member" {
				parts[i], parts[i+1] = parts[i+1], parts[i]
				i++
			}
		}
		told = append(told, fmt.Sprintf("Value null at '%s' failed to satisfy constraint: Member must not be null", strings.Join(parts, ".")))
	}
	noun := "errors"
	if len(told) == 1 {
		noun = "error"
	}
	return Errorf(ValidationError, "%d validation %s detected: %s", len(told), noun, strings.Join(told, "; "))
}

type decoder struct {
	params url.Values
	used   map[string]bool
	stems  map[string]bool // every parameter, and every beginning of one that ends before a dot
	// missing are required parameters that are not there.
	missing []string
}

func (d *decoder) structure(prefix string, target reflect.Value) error {
	for i := range target.NumField() {
		field := target.Type().Field(i)
		name, option, _ := strings.Cut(field.Tag.Get("query"), ",")
		if name == "" {
			name = field.Name
		}
		key := prefix + name
		if !d.stems[key] {
			if option == "required" || option == "present" {
				d.missing = append(d.missing, key)
			}
			continue
		}
		if err := d.value(key, target.Field(i)); err != nil {
			return err
		}
		if option == "required" && target.Field(i).IsZero() && target.Field(i).Kind() != reflect.Bool {
			return Errorf(ValidationError, "the parameter %s is empty", key)
		}
	}
	return nil
}

func (d *decoder) value(key string, target reflect.Value) error {
	switch target.Kind() {
	case reflect.Pointer:
		target.Set(reflect.New(target.Type().Elem()))
		return d.value(key, target.Elem())
	case reflect.Struct:
		return d.structure(key+".", target)
	case reflect.Slice:
		return d.list(key, target)
	case reflect.Map:
		return d.entries(key, target)
	default: // one value
	}
	text, ok := d.scalar(key)
	if !ok {
		return Errorf(ValidationError, "the parameter %s is one value: it has no parts such as %s.member.1", key, key)
	}
	switch target.Kind() {
	case reflect.String:
		target.SetString(text)
	case reflect.Int32, reflect.Int64:
		number, err := strconv.ParseInt(text, 10, target.Type().Bits())
		if err != nil || strconv.FormatInt(number, 10) != text { // one spelling: no +1, no 007
			return Errorf(ValidationError, "the parameter %s is %.50q: it must be a whole number", key, text)
		}
		target.SetInt(number)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return Errorf(ValidationError, "the parameter %s is %.50q: it must be true or false", key, text)
		}
		target.SetBool(text == "true")
	default:
		return fmt.Errorf("awsquery: cannot decode the parameter %s into %s", key, target.Type())
	}
	return nil
}

func (d *decoder) scalar(key string) (string, bool) {
	if !d.params.Has(key) {
		return "", false
	}
	d.used[key] = true
	return d.params.Get(key), true
}

// empty takes KEY=, which is how SDKs write an empty list.
func (d *decoder) empty(key string) error {
	if text, ok := d.scalar(key); ok && text != "" {
		return Errorf(ValidationError, "the parameter %s is a list: write %s.member.1", key, key)
	}
	return nil
}

func (d *decoder) list(key string, target reflect.Value) error {
	for n := 1; d.stems[key+".member."+strconv.Itoa(n)]; n++ {
		item := reflect.New(target.Type().Elem()).Elem()
		if err := d.value(key+".member."+strconv.Itoa(n), item); err != nil {
			return err
		}
		target.Set(reflect.Append(target, item))
	}
	return d.empty(key)
}

func (d *decoder) entries(key string, target reflect.Value) error {
	target.Set(reflect.MakeMap(target.Type()))
	for n := 1; d.stems[key+".entry."+strconv.Itoa(n)]; n++ {
		entry := key + ".entry." + strconv.Itoa(n)
		name, ok := d.scalar(entry + ".key")
		if !ok {
			return Errorf(ValidationError, "the parameter %s.key is missing", entry)
		}
		nameValue, item := reflect.ValueOf(name).Convert(target.Type().Key()), reflect.New(target.Type().Elem()).Elem()
		if target.MapIndex(nameValue).IsValid() {
			return Errorf(ValidationError, "the parameter %s.key is %.50q a second time", entry, name)
		}
		if err := d.value(entry+".value", item); err != nil {
			return err
		}
		target.SetMapIndex(nameValue, item)
	}
	return d.empty(key)
}
