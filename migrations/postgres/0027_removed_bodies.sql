-- The long bodies of removed jobs have a column of their own, so that they are not written as part of JSON.
ALTER TABLE removed ADD COLUMN body TEXT;               -- in the JSON, it is empty then
