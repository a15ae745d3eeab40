// SPDX-License-Identifier: Apache-2.0

// Package shellquote splits a line into words as a shell does, and writes words so that a shell and systemd read them
// back. It expands nothing: no variables, no patterns, no substitution of commands.
package shellquote

import (
	"errors"
	"fmt"
	"strings"
)

// Limits of what is taken apart: the kernel has others for what a program may be given.
const (
	maxLine  = 128 << 10
	maxWords = 1024
)

// Split takes a line apart by the shell's rules of quoting (POSIX, Shell Command Language, 2.2): blanks separate; a
// backslash takes the next character as it is; nothing is special between single quotes; between double quotes a
// backslash quotes " \ $ ` and nothing else.
func Split(line string) ([]string, error) {
	if len(line) > maxLine {
		return nil, fmt.Errorf("is %d bytes long; at most %d are allowed", len(line), maxLine)
	}
	if strings.ContainsRune(line, 0) {
		return nil, errors.New("has a NUL character in it, which no program can be given")
	}
	var all []string
	for rest := strings.TrimLeft(line, blanks); rest != ""; rest = strings.TrimLeft(rest, blanks) {
		if len(all) == maxWords {
			return nil, fmt.Errorf("has more than %d words", maxWords)
		}
		word, after, err := next(rest)
		if err != nil {
			return nil, err
		}
		all, rest = append(all, word), after
	}
	return all, nil
}

const blanks = " \t\n\r"

// next reads the word that the line begins with.
func next(line string) (word, rest string, err error) {
	var out strings.Builder
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case strings.IndexByte(blanks, c) >= 0:
			return out.String(), line[i:], nil
		case c == '\\':
			i++
			if i == len(line) {
				return "", "", errors.New("ends with a backslash that has nothing to quote")
			}
			if line[i] != '\n' { // a line that is continued
				out.WriteByte(line[i])
			}
		case c == '\'':
			end := strings.IndexByte(line[i+1:], '\'')
			if end < 0 {
				return "", "", errors.New("has a single quote that is never closed")
			}
			out.WriteString(line[i+1 : i+1+end])
			i += end + 1
		case c == '"':
			length, err := quoted(&out, line[i+1:])
			if err != nil {
				return "", "", err
			}
			i += length
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), "", nil
}

// quoted reads what follows a double quote, to the other one, and says how much that was.
func quoted(out *strings.Builder, line string) (int, error) {
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			return i + 1, nil
		case c == '\\' && i+1 < len(line) && line[i+1] == '\n':
			i++
		case c == '\\' && i+1 < len(line) && strings.IndexByte(special, line[i+1]) >= 0:
			i++
			out.WriteByte(line[i])
		default:
			out.WriteByte(c)
		}
	}
	return 0, errors.New("has a double quote that is never closed")
}

// special are the characters that are special between double quotes.
const special = "\"\\$`"

// plain are the characters that need no quoting anywhere.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=.,:/@%+"

// Quote writes a word so that a shell, [Split] and systemd (in a variable that is split into words, systemd.service(5))
// read the same. Between double quotes systemd takes a backslash away from whatever follows it, so only what all of
// them agree on is written.
func Quote(word string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return `"` + Escape(word) + `"`
}

// Escape writes text as it stands between double quotes.
func Escape(text string) string {
	var out strings.Builder
	for i := range len(text) {
		if strings.IndexByte(special, text[i]) >= 0 {
			out.WriteByte('\\')
		}
		out.WriteByte(text[i])
	}
	return out.String()
}
