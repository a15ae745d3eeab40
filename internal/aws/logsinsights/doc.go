// SPDX-License-Identifier: Apache-2.0

// Package logsinsights reads the query language of CloudWatch Logs Insights: a text of commands separated by | becomes a tree,
// or an error that points at the character.
//
// Commands are fields, display, filter (or where), parse by glob or regular expression, stats, sort, limit, dedup, pattern and
// unnest. Names of commands, functions and keywords may be in any case. A name is made of letters, digits, _, @ and dots;
// others stand in backquotes. Text stands in single or double quotes, a regular expression between slashes, and a # begins
// a comment that ends with the line. Regular expressions are RE2's, as Go has them: Hyperscan, which AWS uses, has no
// look-around and no backreferences either.
//
// Commands that AWS has and this package does not are refused by their name with the reason; see refused.go.
//
// Mistakes that only the whole query shows are refused, too: an aggregate function outside stats, a name that stats
// does not produce after it, any command but limit after dedup, a wrong number of arguments or aliases.
package logsinsights
