//! The option string: `key = value; key = value; `.
//!
//! `;` ends a pair, `=` separates key and value, `\` takes the next character literally, and blanks around keys and
//! values do not count.

use super::OptionError;

/// Splits an option string into its pairs. Blank pairs are ignored, and so is a blank string.
pub fn split(text: &str) -> Result<Vec<(String, String)>, OptionError> {
    let mut pairs = Vec::new();
    let mut fields = vec![String::new()];
    let mut end_pair = |fields: &mut Vec<String>| -> Result<(), OptionError> {
        let trimmed: Vec<String> = fields
            .iter()
            .map(|field| field.trim().to_string())
            .collect();
        *fields = vec![String::new()];
        match <[String; 2]>::try_from(trimmed) {
            Ok([key, value]) if !key.is_empty() => pairs.push((key, value)),
            Ok([_, value]) => return Err(OptionError::EmptyKey { value }),
            Err(fields) if fields.len() == 1 && fields[0].is_empty() => {}
            Err(fields) if fields.len() == 1 => {
                return Err(OptionError::NoValue {
                    key: fields[0].clone(),
                });
            }
            Err(fields) => {
                return Err(OptionError::ManyValues {
                    key: fields[0].clone(),
                });
            }
        }
        Ok(())
    };
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ';' => end_pair(&mut fields)?,
            '=' => fields.push(String::new()),
            _ => {
                let literal = if c == '\\' {
                    chars.next().unwrap_or(c)
                } else {
                    c
                };
                if let Some(field) = fields.last_mut() {
                    field.push(literal);
                }
            }
        }
    }
    end_pair(&mut fields)?;
    Ok(pairs)
}

/// Returns `value` with a `\` before each character that has a meaning in the option string.
pub fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, ';' | '=' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        split(text).unwrap()
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_string(), value.to_string())
    }

    #[test]
    fn pairs_are_split_and_trimmed() {
        for blank in ["", " ", ";", " ; ;\t\n"] {
            assert_eq!(pairs(blank), [], "{blank:?}");
        }
        assert_eq!(
            pairs(" a = 1 ;b=2;;\n\tc.d=\t3\t"),
            [pair("a", "1"), pair("b", "2"), pair("c.d", "3")]
        );
        assert_eq!(pairs("a=; b=x y"), [pair("a", ""), pair("b", "x y")]);
        assert_eq!(pairs(r"a\;b=x\=y\;z\\w\q"), [pair("a;b", r"x=y;z\wq")]);
        assert_eq!(pairs("a=x\\"), [pair("a", "x\\")]);
    }

    #[test]
    fn malformed_pairs_are_refused() {
        assert_eq!(
            split("a=1;pc.weight"),
            Err(OptionError::NoValue {
                key: "pc.weight".into()
            })
        );
        assert_eq!(
            split("=5"),
            Err(OptionError::EmptyKey { value: "5".into() })
        );
        assert_eq!(
            split("a=1=2"),
            Err(OptionError::ManyValues { key: "a".into() })
        );
    }

    proptest! {
        #[test]
        fn splitting_never_panics(text in any::<String>()) {
            let _ = split(&text);
        }

        #[test]
        fn escaped_values_come_back(key in "[a-z._;=\\\\]{1,9}", value in r"[a-z;=\\ ]{0,20}") {
            let text = format!("{} = {}; ", escape(&key), escape(&value));
            prop_assert_eq!(split(&text), Ok(vec![(key, value.trim().to_string())]));
        }
    }
}
